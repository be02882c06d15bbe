// Marks a plain function whose loops shall be compiled for several instruction sets; the loader picks one.
#pragma once

// GCC only, and not under sanitizers, whose runtime is not up when the resolvers run.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define PTXBENCH_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PTXBENCH_CLONES
#endif
