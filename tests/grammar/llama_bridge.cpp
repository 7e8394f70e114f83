#include "llama-grammar.h"
#include "llama-impl.h"
#include "llama-vocab.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

// What llama-grammar.cpp needs of the rest of llama.cpp. Without a vocabulary none of this is called.
void llama_log_internal(ggml_log_level, const char *, ...) {}
extern "C" void ggml_abort(const char *, int, const char *, ...) { abort(); }
struct llama_vocab::impl {};
llama_vocab::llama_vocab() {}
llama_vocab::~llama_vocab() {}
bool llama_vocab::is_eog(llama_token) const { return false; }
const std::string & llama_vocab::token_to_piece(llama_token) const { static std::string none; return none; }
int32_t llama_vocab::tokenize(const char *, int32_t, llama_token *, int32_t, bool, bool) const { return 0; }

extern "C" {

void * grammar_new(const char * text, const char * root) {
    try {
        return llama_grammar_init_impl(nullptr, text, root, false, nullptr, 0, nullptr, 0);
    } catch (...) {
        return nullptr;
    }
}

void grammar_free(void * grammar) { llama_grammar_free_impl((llama_grammar *) grammar); }

// Takes characters, or the one token `token` if it is not negative. Returns how many were taken.
long grammar_take(void * grammar, const uint32_t * points, long count, int token) {
    llama_grammar & g = *(llama_grammar *) grammar;
    if (token >= 0) {
        llama_grammar_accept_token(g, token, "<token>");
        return g.stacks.empty() ? 0 : 1;
    }
    for (long at = 0; at < count; at++) {
        llama_grammar_accept(&g, points[at]);
        if (g.stacks.empty()) {
            return at;
        }
    }
    return count;
}

int grammar_done(void * grammar) {
    for (const auto & stack : ((llama_grammar *) grammar)->stacks) {
        if (stack.empty()) {
            return 1;
        }
    }
    return 0;
}

long grammar_stacks(void * grammar) { return (long) ((llama_grammar *) grammar)->stacks.size(); }

}
