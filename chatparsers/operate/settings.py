"""The settings that flags, environment and file ask for."""

from __future__ import annotations

from argparse import Namespace

from ..cli.files import json_object
from ..cli.request import thinking_of
from ..gateway.settings import Settings
from ..sessions.paths import VOLATILE
from ..sessions.session import Limits
from ..sessions.sessions import Rules


def settings_of(arguments: Namespace, name: str, key: str | None) -> Settings:
    """The settings that the words ask for. ``name``: the model's, if no word names it. ``key``: what clients send."""
    return Settings(
        model=arguments.name or name,
        api_key=key,
        max_body=arguments.max_body * 1024 * 1024,
        max_tools=arguments.max_tools,
        concurrency=arguments.concurrency,
        max_tokens=arguments.max_tokens,
        keep_alive=arguments.keep_alive,
        slow_client=arguments.slow_client,
        grammar=not arguments.no_grammar,
        max_schemas=arguments.max_schemas,
        max_prompt=arguments.max_prompt,
        max_cpu=arguments.max_cpu,
        body_timeout=arguments.body_timeout,
        hosts=None if arguments.allowed_hosts is None else tuple(arguments.allowed_hosts),
        cors=tuple(arguments.cors or ()),
        trust_ids=arguments.trust_ids,
        strict_fields=arguments.strict_fields,
        store=arguments.store,
        store_entries=arguments.store_entries,
        store_size=arguments.store_size * 1024 * 1024,
        store_age=arguments.store_age * 86_400,
        max_images=arguments.max_images,
        fetch_images=tuple(arguments.fetch_images or ()),
        drop_unsupported=arguments.drop_unsupported,
        lenient_calls=arguments.lenient_calls,
        strict_tools=arguments.strict_tools,
        loops=arguments.loops,
        cache_watch=arguments.cache_watch * 1024 * 1024,
        rollouts=arguments.rollouts,
        rollouts_name=arguments.rollouts_name,
        rules=Rules(
            sessions=arguments.sessions,
            size=arguments.rollouts_size * 1024 * 1024,
            idle=arguments.session_idle,
            volatile=tuple(arguments.ignore or (VOLATILE,)),
            history=arguments.history,
            limits=Limits(arguments.session_answers, arguments.session_ids, arguments.session_lines),
        ),
        key_file=arguments.api_key_file,
        seal_key_file=arguments.seal_key_file,
        log=arguments.log,
        passed=tuple(arguments.pass_on or ()),
        thinking=thinking_of(arguments),
        effort=arguments.effort,
        template_kwargs=json_object("--template-kwargs", arguments.template_kwargs),
        pin_template_kwargs=arguments.pin_template_kwargs,
    )
