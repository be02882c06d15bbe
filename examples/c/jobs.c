/* Judges several candidates at once through the C ABI, from an event loop of the caller's:
 *   jobs definition.json workload.json options-json solution.json...
 * Each becomes a job; poll(2) says which has finished. "{}" are the default options. */
#include <ptxbench/ptxbench.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long size;
  if (file == NULL) {
    fprintf(stderr, "cannot read %s\n", path);
    return NULL;
  }
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0 &&
      (text = malloc((size_t)size + 1)) != NULL)
    text[fread(text, 1, (size_t)size, file)] = '\0';
  fclose(file);
  return text;
}

static int fail(const char *what, ptxbench_error *error) {
  fprintf(stderr, "%s: %s: %s\n", what, ptxbench_status_name(ptxbench_error_status(error)), ptxbench_error_message(error));
  ptxbench_error_free(error);
  return 2;
}

/* Starts a job for the solution in a file; the job keeps what it needs. */
static int start(ptxbench_job **job, ptxbench_context *context, const ptxbench_definition *definition,
                 const ptxbench_workload *workload, const char *options, const char *path) {
  ptxbench_error *error = NULL;
  ptxbench_solution *solution = NULL;
  const ptxbench_workload *workloads[1];
  char *text = read_file(path);
  int code = 0;
  workloads[0] = workload;
  if (text == NULL) return 2;
  if (ptxbench_solution_parse(&solution, definition, text, PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_job_start(job, context, solution, workloads, 1, NULL, options, PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK)
    code = fail(path, error);
  ptxbench_solution_free(solution);
  free(text);
  return code;
}

int main(int argc, char **argv) {
  static const char *const words[] = {"not judged",     "PASSED",        "INCORRECT_SHAPE", "INCORRECT_NUMERICAL",
                                      "INCORRECT_DTYPE", "RUNTIME_ERROR", "COMPILE_ERROR",   "TIMEOUT"};
  ptxbench_error *error = NULL;
  ptxbench_context *context = NULL;
  ptxbench_definition *definition = NULL;
  ptxbench_workload *workload = NULL;
  ptxbench_job *jobs[MOST] = {NULL};
  struct pollfd fds[MOST];
  char *definition_text, *workload_text;
  int count = argc - 4, left = 0, code = 2, i;

  if (count < 1 || count > MOST) {
    fprintf(stderr, "usage: %s definition.json workload.json options-json solution.json... (at most %d)\n", argv[0], MOST);
    return 2;
  }
  definition_text = read_file(argv[1]);
  workload_text = read_file(argv[2]);
  if (definition_text == NULL || workload_text == NULL) goto done;
  if (ptxbench_definition_parse(&definition, definition_text, PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_workload_parse(&workload, definition, workload_text, PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_context_create(&context, NULL, &error) != PTXBENCH_OK) {
    code = fail("before the first job", error);
    goto done;
  }
  code = 0;
  for (i = 0; i < count; ++i) {
    fds[i].events = POLLIN;
    fds[i].revents = 0;
    if (start(&jobs[i], context, definition, workload, argv[3], argv[i + 4]) != 0) code = 2;
    fds[i].fd = ptxbench_job_fd(jobs[i]); /* -1, which poll passes over, where there is none */
    if (jobs[i] != NULL) ++left;
  }
  while (left > 0 && poll(fds, (nfds_t)count, -1) > 0) {
    for (i = 0; i < count; ++i) {
      ptxbench_evaluation *evaluation = NULL;
      if (fds[i].revents == 0) continue;
      if (ptxbench_job_take(&evaluation, jobs[i], &error) != PTXBENCH_OK) {
        code = fail(argv[i + 4], error);
      } else {
        const ptxbench_verdict_status status = ptxbench_evaluation_status(evaluation);
        printf("%s: %s\n", argv[i + 4], status >= -1 && status <= 6 ? words[status + 1] : "unknown");
        if (status > PTXBENCH_PASSED && code == 0) code = 1;
      }
      ptxbench_evaluation_free(evaluation);
      ptxbench_job_free(jobs[i]);
      jobs[i] = NULL;
      fds[i].fd = -1;
      --left;
    }
  }

done:
  for (i = 0; i < MOST; ++i) ptxbench_job_free(jobs[i]); /* cancels what still runs */
  ptxbench_context_free(context);
  ptxbench_workload_free(workload);
  ptxbench_definition_free(definition);
  free(definition_text);
  free(workload_text);
  return code;
}
