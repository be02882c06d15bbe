/* Judges a candidate through the C ABI and prints its evaluation as JSON:
 *   evaluate definition.json workload.json solution.json [options-json] */
#include <ptxbench/ptxbench.h>

#include <stdio.h>
#include <stdlib.h>

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long size;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0 &&
      (text = malloc((size_t)size + 1)) != NULL) {
    const size_t got = fread(text, 1, (size_t)size, file);
    text[got] = '\0';
  }
  fclose(file);
  return text;
}

static int fail(ptxbench_error *error) {
  fprintf(stderr, "%s: %s\n", ptxbench_status_name(ptxbench_error_status(error)), ptxbench_error_message(error));
  ptxbench_error_free(error);
  return 2;
}

int main(int argc, char **argv) {
  ptxbench_error *error = NULL;
  ptxbench_context *context = NULL;
  ptxbench_definition *definition = NULL;
  ptxbench_workload *workload = NULL;
  ptxbench_solution *solution = NULL;
  ptxbench_evaluation *evaluation = NULL;
  char *texts[3] = {NULL, NULL, NULL};
  const char *options = argc > 4 ? argv[4] : NULL;
  int code = 2, i;

  if (argc < 4) {
    fprintf(stderr, "usage: %s definition.json workload.json solution.json [options-json]\n", argv[0]);
    return 2;
  }
  for (i = 0; i < 3; ++i)
    if ((texts[i] = read_file(argv[i + 1])) == NULL) {
      fprintf(stderr, "cannot read %s\n", argv[i + 1]);
      goto done;
    }
  if (ptxbench_definition_parse(&definition, texts[0], PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_workload_parse(&workload, definition, texts[1], PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_solution_parse(&solution, definition, texts[2], PTXBENCH_LEN_AUTO, &error) != PTXBENCH_OK ||
      ptxbench_context_create(&context, NULL, &error) != PTXBENCH_OK) {
    code = fail(error);
    goto done;
  }
  {
    const ptxbench_workload *workloads[1];
    workloads[0] = workload;
    if (ptxbench_evaluate(&evaluation, context, solution, workloads, 1, NULL, options, PTXBENCH_LEN_AUTO, NULL, &error) !=
        PTXBENCH_OK) {
      code = fail(error);
      goto done;
    }
  }
  printf("%s\n", ptxbench_evaluation_json(evaluation, NULL));
  code = ptxbench_evaluation_status(evaluation) > PTXBENCH_PASSED ? 1 : 0;

done:
  ptxbench_evaluation_free(evaluation);
  ptxbench_context_free(context);
  ptxbench_solution_free(solution);
  ptxbench_workload_free(workload);
  ptxbench_definition_free(definition);
  for (i = 0; i < 3; ++i) free(texts[i]);
  return code;
}
