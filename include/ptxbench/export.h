/** @file
 * Attributes of the C ABI's declarations. */
#ifndef PTXBENCH_EXPORT_H
#define PTXBENCH_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define PTXBENCH_API __attribute__((visibility("default")))
#define PTXBENCH_NODISCARD __attribute__((warn_unused_result))
#else
#define PTXBENCH_API
#define PTXBENCH_NODISCARD
#endif

/** Define PTXBENCH_NO_DEPRECATED to silence deprecations. */
#if defined(PTXBENCH_NO_DEPRECATED) || !(defined(__GNUC__) || defined(__clang__))
#define PTXBENCH_DEPRECATED(text)
#else
#define PTXBENCH_DEPRECATED(text) __attribute__((deprecated(text)))
#endif

#endif
