/** @file
 * The C ABI of ptxbench, version 0.x: it may still change between minor versions.
 *
 * Rules for all of it:
 *  - Handles are opaque; each has one owner and one `_free`, which takes NULL. Children hold shared references to
 *    their parents, so frees may come in any order.
 *  - Functions that can fail return a ptxbench_status; outputs come first and are NULL or zero on failure; the error
 *    object is the last parameter, may be NULL, and is set to NULL on success.
 *  - Text in: UTF-8, pointer and length (PTXBENCH_LEN_AUTO: NUL-terminated), copied before return. Text out: borrowed
 *    from the handle, NUL-terminated, valid until that handle is freed; the optional length excludes the NUL.
 *  - A bad candidate is PTXBENCH_OK with a verdict that says so. Negative statuses are for bad calls, malformed
 *    documents and the environment; treat unknown negative values as PTXBENCH_E_INTERNAL.
 *  - Definitions, workloads, solutions, compiled candidates and evaluations are immutable: share them between threads,
 *    free them once. A context may be used from many threads at once. `_free` may be called on any thread.
 *  - The library makes no CUDA context in the calling process, installs no signal handler, and never waits for
 *    children that are not its own. After fork without exec a child may only exit.
 */
#ifndef PTXBENCH_H
#define PTXBENCH_H

#include <ptxbench/export.h>
#include <ptxbench/version.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As a length: the text is NUL-terminated, measure it. */
#define PTXBENCH_LEN_AUTO SIZE_MAX

/** Status of a call: 0 is success, negatives are stable for ever, new ones may appear. */
typedef int32_t ptxbench_status;
enum {
  PTXBENCH_OK = 0,
  PTXBENCH_E_INVALID_ARGUMENT = -1, /**< the caller's mistake */
  PTXBENCH_E_PARSE = -2,            /**< malformed JSON, schema violation, unknown option; the error has the place */
  PTXBENCH_E_NOT_FOUND = -3,
  PTXBENCH_E_IO = -4,
  PTXBENCH_E_NO_DEVICE = -5, /**< no driver, no GPU, or no such device */
  PTXBENCH_E_TOOLKIT = -6,   /**< NVRTC, cuBLAS, CUPTI missing or too old */
  PTXBENCH_E_DRIVER = -7,    /**< unexpected CUresult in a worker */
  PTXBENCH_E_STATE = -8,     /**< call not legal in the handle's current state */
  PTXBENCH_E_CANCELLED = -9,
  PTXBENCH_E_CALLBACK = -10, /**< a host callback returned non-zero; see ptxbench_error_user_code */
  PTXBENCH_E_NO_MEMORY = -11,
  PTXBENCH_E_UNSUPPORTED = -12,
  PTXBENCH_E_WORKER = -13, /**< the worker cannot be found, started, or does not match this library */
  PTXBENCH_E_BUSY = -14,   /**< a poll: not finished yet */
  PTXBENCH_E_INTERNAL = -99
};

typedef struct ptxbench_error ptxbench_error;
typedef struct ptxbench_context ptxbench_context;       /**< device choice, workers, cache, log sink */
typedef struct ptxbench_definition ptxbench_definition; /**< immutable */
typedef struct ptxbench_workload ptxbench_workload;     /**< immutable */
typedef struct ptxbench_solution ptxbench_solution;     /**< immutable */
typedef struct ptxbench_compiled ptxbench_compiled;     /**< immutable: modules, diagnostics, resources */
typedef struct ptxbench_judging ptxbench_judging;       /**< what the host brings: inputs, reference, ... */
typedef struct ptxbench_evaluation ptxbench_evaluation; /**< immutable: verdicts over workloads */
typedef struct ptxbench_cancel ptxbench_cancel;         /**< thread-safe flag */
typedef struct ptxbench_job ptxbench_job;               /**< an evaluation under way */

/* ---- library ---- */

/** Version of the library: major<<16 | minor<<8 | patch. Any thread. @since 0.1 */
PTXBENCH_API uint32_t ptxbench_version(void);
/** ABI version of the library; equals PTXBENCH_ABI_VERSION of matching headers. Any thread. @since 0.1 */
PTXBENCH_API uint32_t ptxbench_abi_version(void);
/** How the library was built, as a JSON object (version, compiler, worker_path). Static. Any thread.
 * @param len receives the length; may be NULL. @since 0.1 */
PTXBENCH_API const char *ptxbench_build_info(size_t *len);
/** Stable name of a status, e.g. "PTXBENCH_E_PARSE"; "PTXBENCH_E_UNKNOWN" for one that this library does not know.
 * Static, never NULL. Any thread. @since 0.1 */
PTXBENCH_API const char *ptxbench_status_name(ptxbench_status status);

/* ---- errors ---- */

/** The status that came with the error; PTXBENCH_OK for NULL. @since 0.1 */
PTXBENCH_API ptxbench_status ptxbench_error_status(const ptxbench_error *err);
/** What is wrong, for people; "" for NULL. Borrowed. @since 0.1 */
PTXBENCH_API const char *ptxbench_error_message(const ptxbench_error *err);
/** The error as JSON: {"status", "message", "file", "pointer", "line", "column", "rule", "user_code"}. Borrowed; "{}" for
 * NULL. @param len receives the length; may be NULL. @since 0.1 */
PTXBENCH_API const char *ptxbench_error_json(const ptxbench_error *err, size_t *len);
/** What a host callback returned (PTXBENCH_E_CALLBACK), else 0. @since 0.1 */
PTXBENCH_API int32_t ptxbench_error_user_code(const ptxbench_error *err);
/** Frees an error; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_error_free(ptxbench_error *err);

/* ---- context ---- */

/** Receives progress and log lines. Called on a thread that is inside a ptxbench call, or on the library's own where jobs or
 * lists of requests are under way, possibly on two at once.
 * @param level 0 debug, 1 info, 2 warning, 3 error. @param text not NUL-terminated. */
typedef void (*ptxbench_log_fn)(void *userdata, int32_t level, const char *text, size_t len);

/** Options of a context. Initialise with ptxbench_context_options_init, then set what differs. */
typedef struct ptxbench_context_options {
  size_t struct_size;       /**< sizeof(ptxbench_context_options) as the caller compiled it */
  const char *device;       /**< NULL or "auto" (the first GPU; where there is none, the emulator of an H200), "cuda:0",
                                 "cuda:GPU-uuid", "emulator:h200", "emulator:h100" (with options: docs/emulator.md),
                                 "none"; copied */
  const char *worker_path;  /**< NULL: beside the library, then the installed path; copied */
  const char *cuda_home;    /**< NULL: searched; copied */
  const char *cache_dir;    /**< NULL: the user's cache folder; "": none; copied */
  ptxbench_log_fn log;      /**< NULL: silent */
  void *log_userdata;
  uint32_t compile_workers; /**< 0: by the number of cores */
  uint32_t reserved0;       /**< 0 */
  const char *lock_dir;     /**< where processes take turns in timing on a GPU; NULL: one folder for the whole machine
                                 (/tmp/ptxbench-locks); "": they take no turns; copied */
  uint64_t compile_memory_bytes; /**< of a compile worker, beyond what it starts with; 0: 4 GiB */
} ptxbench_context_options;

/** Sets every field of @p opts to its default. @param struct_size sizeof(*opts). @since 0.1 */
PTXBENCH_API void ptxbench_context_options_init(ptxbench_context_options *opts, size_t struct_size);
/** Makes a context. No worker is started until one is needed.
 * @param out receives the context. @param opts NULL: all defaults.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_UNSUPPORTED (a newer header's field is set, or a profile
 * that cannot be emulated), PTXBENCH_E_NOT_FOUND (no such profile of the emulator), PTXBENCH_E_WORKER. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_context_create(ptxbench_context **out,
                                                                        const ptxbench_context_options *opts,
                                                                        ptxbench_error **err);
/** Frees a context; its workers end when no call and no job uses them any more: jobs that are under way go on.
 * NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_context_free(ptxbench_context *ctx);

/** Makes a cancel flag. @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_NO_MEMORY. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_cancel_create(ptxbench_cancel **out, ptxbench_error **err);
/** Raises the flag: calls that were given it end with PTXBENCH_E_CANCELLED. Any thread, async-signal-safe. @since 0.1 */
PTXBENCH_API void ptxbench_cancel_trigger(ptxbench_cancel *cancel);
/** Frees a cancel flag; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_cancel_free(ptxbench_cancel *cancel);

/* ---- documents: JSON in, JSON out ---- */

/** Parses a FlashInfer-Trace definition. @param json UTF-8 text of @p len bytes.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_definition_parse(ptxbench_definition **out, const char *json,
                                                                          size_t len, ptxbench_error **err);
/** The definition as JSON. Borrowed. @param len receives the length; may be NULL. @since 0.1 */
PTXBENCH_API const char *ptxbench_definition_json(const ptxbench_definition *def, size_t *len);
/** Frees a definition; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_definition_free(ptxbench_definition *def);
/** Parses a workload (bare, or a trace line that holds one) and checks it against its definition.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_workload_parse(ptxbench_workload **out,
                                                                        const ptxbench_definition *def,
                                                                        const char *json, size_t len,
                                                                        ptxbench_error **err);
/** Frees a workload; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_workload_free(ptxbench_workload *workload);
/** Parses a solution: a record with its sources inside.
 * @param def checked against the record's definition name; may be NULL.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_solution_parse(ptxbench_solution **out,
                                                                        const ptxbench_definition *def,
                                                                        const char *json, size_t len,
                                                                        ptxbench_error **err);
/** Frees a solution; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_solution_free(ptxbench_solution *solution);

/* ---- compile ---- */

/** Compiles a candidate for a workload in a worker process. A bad candidate is PTXBENCH_OK with
 * ptxbench_compiled_ok() == 0 and its diagnostics in the JSON.
 * @param options_json options of docs/evaluate.md as a JSON object; NULL: defaults. @param cancel may be NULL.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE (options), PTXBENCH_E_TOOLKIT, PTXBENCH_E_WORKER,
 * PTXBENCH_E_CANCELLED. Blocks; any thread, many at once. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status
ptxbench_compile(ptxbench_compiled **out, ptxbench_context *ctx, const ptxbench_solution *solution,
                 const ptxbench_workload *workload, const char *options_json, size_t options_len,
                 ptxbench_cancel *cancel, ptxbench_error **err);
/** 1 if it compiled, else 0 (also for NULL). @since 0.1 */
PTXBENCH_API int32_t ptxbench_compiled_ok(const ptxbench_compiled *compiled);
/** The verdict as far as compiling goes, as JSON (docs/verdict.md). Borrowed. @param len may be NULL. @since 0.1 */
PTXBENCH_API const char *ptxbench_compiled_json(const ptxbench_compiled *compiled, size_t *len);
/** How many modules there are: one for each .cu, .ptx or .cubin source in use. @since 0.1 */
PTXBENCH_API size_t ptxbench_compiled_module_count(const ptxbench_compiled *compiled);
/** A module's cubin. Borrowed; NULL where there is none. @param len receives its size; may be NULL. @since 0.1 */
PTXBENCH_API const void *ptxbench_compiled_cubin(const ptxbench_compiled *compiled, size_t module, size_t *len);
/** Frees a compiled candidate; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_compiled_free(ptxbench_compiled *compiled);

/* ---- what the host brings: each part left out takes its default ---- */

/* Callbacks run on the thread that is inside ptxbench_evaluate or ptxbench_evaluate_many, one at a time; those of all jobs of
 * a context on one thread of the library. They must not throw nor longjmp, and may call anything but ptxbench_evaluate,
 * ptxbench_evaluate_many and ptxbench_job_wait on the context that calls them (PTXBENCH_E_STATE) and functions on the same
 * judging. A non-zero return ends the evaluation with PTXBENCH_E_CALLBACK and is kept in ptxbench_error_user_code. Tensors are host memory, dense and row-major, in the definition's order; scalar
 * inputs are left out. `destroy` may be NULL and is called exactly once, when the last user of the judging is gone, also
 * when the setter that was given it fails. */

/** Computes the expected outputs. */
typedef struct ptxbench_reference {
  size_t struct_size; /**< sizeof(ptxbench_reference) */
  void *userdata;
  /** Fills each output from the inputs. 0 = ok. */
  int32_t (*compute)(void *userdata, const char *workload_json, size_t len, const void *const *inputs,
                     void *const *outputs);
  void (*destroy)(void *userdata);
} ptxbench_reference;

/** Draws the inputs. */
typedef struct ptxbench_inputs {
  size_t struct_size; /**< sizeof(ptxbench_inputs) */
  void *userdata;
  /** Fills each input; equal (seed, trial) must give equal bytes. 0 = ok. */
  int32_t (*fill)(void *userdata, const char *workload_json, size_t len, uint64_t seed, int32_t trial,
                  void *const *inputs);
  void (*destroy)(void *userdata);
} ptxbench_inputs;

/** Compares outputs. */
typedef struct ptxbench_comparison {
  size_t struct_size; /**< sizeof(ptxbench_comparison) */
  void *userdata;
  /** Writes, for each output, how many of its elements are wrong. 0 = the comparison could be made. */
  int32_t (*compare)(void *userdata, const char *workload_json, size_t len, const void *const *expected,
                     const void *const *got, uint64_t *wrong_elements);
  void (*destroy)(void *userdata);
} ptxbench_comparison;

/** For a host that shares the GPU. */
typedef struct ptxbench_timing_hooks {
  size_t struct_size; /**< sizeof(ptxbench_timing_hooks) */
  void *userdata;
  void (*before)(void *userdata); /**< before the first timed run of a workload; may be NULL */
  void (*after)(void *userdata);  /**< after the last one, whenever `before` was called; may be NULL */
  void (*destroy)(void *userdata);
} ptxbench_timing_hooks;

/** Makes a judging with all defaults: random inputs, the native reference, the vendor library's kernel as baseline,
 * comparison by model error. Set it up on one thread, then share it.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_NO_MEMORY. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_create(ptxbench_judging **out, ptxbench_error **err);
/** Sets the host's own inputs; the struct is copied. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_inputs(ptxbench_judging *judging,
                                                                            const ptxbench_inputs *inputs,
                                                                            ptxbench_error **err);
/** Sets the host's own reference; the struct is copied. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_reference(ptxbench_judging *judging,
                                                                               const ptxbench_reference *reference,
                                                                               ptxbench_error **err);
/** Sets the host's own comparison; the struct is copied. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_comparison(ptxbench_judging *judging,
                                                                                const ptxbench_comparison *comparison,
                                                                                ptxbench_error **err);
/** Sets what is called around timing; the struct is copied. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_timing_hooks(ptxbench_judging *judging,
                                                                                  const ptxbench_timing_hooks *hooks,
                                                                                  ptxbench_error **err);
/** Compares by tolerance: |got - expected| <= atol + rtol * |expected|, every element.
 * @param output name of an output; NULL: all of them. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_tolerance(ptxbench_judging *judging,
                                                                               const char *output, double atol,
                                                                               double rtol, ptxbench_error **err);
/** Takes another solution's outputs as expected ones. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_reference_solution(
    ptxbench_judging *judging, const ptxbench_solution *solution, ptxbench_error **err);
/** Takes the outputs that the workloads store beside their stored inputs as expected ones; a request whose workloads lack
 * some is PTXBENCH_E_INVALID_ARGUMENT. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_reference_golden(ptxbench_judging *judging,
                                                                                      ptxbench_error **err);
/** Runs the definition's own `reference`, by a Python interpreter with torch in a process of its own, once for each draw
 * of inputs. Trusted code: it runs with the rights of this process.
 * @param python a path, or a name that is searched on the PATH; NULL: "python3"
 * @param gpu not 0: tensors on "cuda" where torch sees one
 * @param deadline_ns of one call; 0: 600 s. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_reference_python(ptxbench_judging *judging,
                                                                                      const char *python, int32_t gpu,
                                                                                      uint64_t deadline_ns,
                                                                                      ptxbench_error **err);
/** Names the folder that the paths of stored tensors are relative to, a trace set's root; by default ".".
 * @param path copied. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_data_root(ptxbench_judging *judging,
                                                                               const char *path, ptxbench_error **err);
/** Takes another solution as baseline. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_baseline_solution(
    ptxbench_judging *judging, const ptxbench_solution *solution, ptxbench_error **err);
/** Takes a fixed time as baseline; 0: no baseline and no speedup. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_judging_set_baseline_ns(ptxbench_judging *judging,
                                                                                 uint64_t baseline_ns,
                                                                                 ptxbench_error **err);
/** Frees a judging; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_judging_free(ptxbench_judging *judging);

/* ---- evaluate ---- */

/** FlashInfer-Trace's words for how a candidate did. */
typedef int32_t ptxbench_verdict_status;
enum {
  PTXBENCH_NOT_JUDGED = -1, /**< not applicable, not run, or incomplete: the JSON's outcome says which */
  PTXBENCH_PASSED = 0,
  PTXBENCH_INCORRECT_SHAPE = 1,
  PTXBENCH_INCORRECT_NUMERICAL = 2,
  PTXBENCH_INCORRECT_DTYPE = 3,
  PTXBENCH_RUNTIME_ERROR = 4,
  PTXBENCH_COMPILE_ERROR = 5,
  PTXBENCH_TIMEOUT = 6
};

/** Numbers of a verdict's timing. Set struct_size before the call; only that much is written. */
typedef struct ptxbench_timing {
  size_t struct_size;
  uint64_t median_ns, baseline_median_ns;
  double speedup, speedup_low, speedup_high; /**< baseline's time / the candidate's; 95% interval; NaN: none */
  uint32_t pairs;
  uint32_t flags; /**< bit 0: measured; bit 1: a tie, inside the noise floor */
} ptxbench_timing;

/** Judges a candidate on workloads. A bad candidate is PTXBENCH_OK with its verdicts. On an emulator there are no times;
 * the options "trials", "schedules", "small_sm_count", "schedule_budget_s" and "run_deadline_s" bound what it does.
 * @param workloads array of @p workload_count workloads of one definition. @param judging NULL: all defaults.
 * @param options_json options of docs/evaluate.md as a JSON object; NULL: defaults. @param cancel may be NULL.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE (options), PTXBENCH_E_TOOLKIT, PTXBENCH_E_WORKER,
 * PTXBENCH_E_DRIVER, PTXBENCH_E_CALLBACK, PTXBENCH_E_CANCELLED. Blocks; any thread, many at once. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status
ptxbench_evaluate(ptxbench_evaluation **out, ptxbench_context *ctx, const ptxbench_solution *solution,
                  const ptxbench_workload *const *workloads, size_t workload_count, const ptxbench_judging *judging,
                  const char *options_json, size_t options_len, ptxbench_cancel *cancel, ptxbench_error **err);

/** One of many evaluations: what ptxbench_evaluate takes. */
typedef struct ptxbench_request {
  size_t struct_size; /**< sizeof(ptxbench_request) */
  const ptxbench_solution *solution;
  const ptxbench_workload *const *workloads;
  size_t workload_count;
  const ptxbench_judging *judging; /**< NULL: all defaults */
  const char *options_json;        /**< NULL: defaults */
  size_t options_len;
} ptxbench_request;

/** Judges many requests and keeps the device busy: candidates are compiled ahead, in parallel and a bounded number of them,
 * while the device measures one after another.
 * @param out array of @p count; receives the evaluations, in order; NULL where a request ended with an error.
 * @param errors array of @p count, or NULL; receives each request's own error, NULL where there is none. Free each.
 * @param requests array of @p count pointers. @param cancel ends all of them; may be NULL.
 * @return PTXBENCH_OK where the requests were dealt with, each in its own way; PTXBENCH_E_INVALID_ARGUMENT,
 * PTXBENCH_E_UNSUPPORTED (a newer header's field is set), PTXBENCH_E_NO_MEMORY, and then every output is NULL. Blocks;
 * any thread, many at once. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status
ptxbench_evaluate_many(ptxbench_evaluation **out, ptxbench_error **errors, ptxbench_context *ctx,
                       const ptxbench_request *const *requests, size_t count, ptxbench_cancel *cancel, ptxbench_error **err);

/* ---- the same without blocking: start, then poll the descriptor or wait, then take ---- */

/** Where a job is. */
typedef int32_t ptxbench_job_state;
enum {
  PTXBENCH_JOB_QUEUED = 0,   /**< nothing has been done for it */
  PTXBENCH_JOB_RUNNING = 1,  /**< it is being compiled or measured, or waits between the two */
  PTXBENCH_JOB_FINISHED = 2, /**< ptxbench_job_take has its result */
  PTXBENCH_JOB_TAKEN = 3     /**< it has been taken */
};

/** Starts an evaluation and does not wait for it. Many may be under way on one context; they begin in the order of starting.
 * The job keeps what it needs: context, documents and judging may be freed at once. Parameters as for ptxbench_evaluate.
 * @return PTXBENCH_OK, PTXBENCH_E_INVALID_ARGUMENT, PTXBENCH_E_PARSE (options), PTXBENCH_E_UNSUPPORTED (nothing computes what
 * is expected), PTXBENCH_E_IO (no descriptor left), PTXBENCH_E_NO_MEMORY. Any thread, many at once. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status
ptxbench_job_start(ptxbench_job **out, ptxbench_context *ctx, const ptxbench_solution *solution,
                   const ptxbench_workload *const *workloads, size_t workload_count, const ptxbench_judging *judging,
                   const char *options_json, size_t options_len, ptxbench_error **err);
/** A descriptor that becomes readable when the job has finished and stays so, for poll, select, epoll. It is the job's: do
 * not read from it nor close it. -1 for NULL. Any thread. @since 0.1 */
PTXBENCH_API int ptxbench_job_fd(const ptxbench_job *job);
/** Where the job is; PTXBENCH_JOB_TAKEN for NULL. Any thread. @since 0.1 */
PTXBENCH_API ptxbench_job_state ptxbench_job_poll(const ptxbench_job *job);
/** Waits until the job has finished. @param timeout_ns at most so long; UINT64_MAX: without an end.
 * @return PTXBENCH_OK: it has; PTXBENCH_E_BUSY: not yet; PTXBENCH_E_INVALID_ARGUMENT; PTXBENCH_E_STATE in a callback of a job
 * of the same context, where waiting would never end. Any thread, many at once. @since 0.1 */
PTXBENCH_API ptxbench_status ptxbench_job_wait(const ptxbench_job *job, uint64_t timeout_ns);
/** Takes the result, once.
 * @return PTXBENCH_OK, PTXBENCH_E_BUSY where it has not finished, PTXBENCH_E_STATE where it has been taken, else what
 * ptxbench_evaluate would have returned: PTXBENCH_E_CANCELLED, PTXBENCH_E_CALLBACK, ... Any thread. @since 0.1 */
PTXBENCH_NODISCARD PTXBENCH_API ptxbench_status ptxbench_job_take(ptxbench_evaluation **out, ptxbench_job *job,
                                                                  ptxbench_error **err);
/** Ends the job with PTXBENCH_E_CANCELLED, unless it has finished. Does not wait; within 100 ms its worker is killed. NULL is
 * fine. Any thread. @since 0.1 */
PTXBENCH_API void ptxbench_job_cancel(ptxbench_job *job);
/** Frees a job; NULL is fine. One that has not finished is cancelled, and this waits for its end (within 100 ms, or as long as a
 * callback of it still runs): afterwards none of its callbacks is called. In a callback of a job of the same context it does
 * not wait. Any thread, when no other is in a call on it. @since 0.1 */
PTXBENCH_API void ptxbench_job_free(ptxbench_job *job);

/** Status over all workloads. @since 0.1 */
PTXBENCH_API ptxbench_verdict_status ptxbench_evaluation_status(const ptxbench_evaluation *evaluation);
/** Number of verdicts: one a workload, in the order given. @since 0.1 */
PTXBENCH_API size_t ptxbench_evaluation_count(const ptxbench_evaluation *evaluation);
/** Status of one verdict; PTXBENCH_NOT_JUDGED where @p index is out of range. @since 0.1 */
PTXBENCH_API ptxbench_verdict_status ptxbench_verdict_status_at(const ptxbench_evaluation *evaluation, size_t index);
/** Timing of one verdict. @return PTXBENCH_OK (flags say whether it was measured), PTXBENCH_E_INVALID_ARGUMENT,
 * PTXBENCH_E_NOT_FOUND. @since 0.1 */
PTXBENCH_API ptxbench_status ptxbench_verdict_timing_at(const ptxbench_evaluation *evaluation, size_t index,
                                                        ptxbench_timing *out);
/** The evaluation as JSON (docs/verdict.md). Borrowed. @param len receives the length; may be NULL. @since 0.1 */
PTXBENCH_API const char *ptxbench_evaluation_json(const ptxbench_evaluation *evaluation, size_t *len);
/** Frees an evaluation; NULL is fine. @since 0.1 */
PTXBENCH_API void ptxbench_evaluation_free(ptxbench_evaluation *evaluation);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
