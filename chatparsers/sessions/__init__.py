"""Agents' sessions as training samples: the answers that a gateway sampled, as trees of rollouts, logged and exported.

    requests ──paths──> the answer that each goes on from ──rollouts──> ids ──engine──> log ──samples──> rows

It knows no HTTP and no engine: `chatparsers.gateway` asks it what the engine gets, and tells it what was sampled.
"""
