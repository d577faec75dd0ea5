/* The C interface of hebe. Dispatch is in libhebe_dispatch.so, which needs nothing else, and with
   the rest in libhebe.so; a process uses the table of one of them (include/hebe/dispatch.hpp says
   what holds). Strings are UTF-8 and end with 0; those of a choice stay valid for the life of the
   process. No exception crosses. */
#ifndef HEBE_H
#define HEBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hebe_choice {
  uint32_t index;
  const char* name;
  const char* configuration;   /* JSON */
  const char* artifact_sha256; /* empty: none */
  const char* shape;
  const char* provenance;
  int64_t energy_nj;
} hebe_choice;

typedef void (*hebe_missing)(const char* operation, const char* dtype, void* user);

/* 0, or the program's exit code for why not, which is then in `why` (cut to `why_size`, may be
 * NULL). */
int hebe_dispatch_load(const char* file, const char* board, char* why, size_t why_size);
void hebe_dispatch_unload(void);
/* 1 and *out (may be NULL); 0: no row, fall back; -2: bad_argument, the operation's rows of that
 * dtype have another number of sizes (hebe_dispatch_dimensions names them). *out is set by 1 alone.
 */
int hebe_dispatch_find(const char* operation, const int64_t* sizes, size_t count, const char* dtype,
                       hebe_choice* out);
void hebe_dispatch_on_missing(hebe_missing tell, void* user);
/* How many dimensions the operation's rows of that dtype have, and their names in the order of
 * find's sizes, with commas (cut to `names_size`, may be NULL); 0: it has no row. */
size_t hebe_dispatch_dimensions(const char* operation, const char* dtype, char* names,
                                size_t names_size);

/* --- libhebe.so alone ---------------------------------------------------------------------------

   Requests and answers are JSON objects (docs/python.md says what is in them). A call returns the
   program's exit code (0 done … 70 a bug, 130 interrupted: docs/refusals.md); *answer is then the
   result, or {"refused": {"code", "what", "where", "next", "not_written", "exit"}}, to be given to
   hebe_free(); NULL where memory ran out. One measurement at a time in a process: another is
   refused as lease_held. */

const char* hebe_version(void);
void hebe_free(char* answer);

/* Asked before every window, on the calling thread: not 0 stops the measurement (interrupted). May
 * be NULL. */
typedef int (*hebe_interrupted)(void* user);

/* The board, its meters and whether it could be measured on now. */
int hebe_status(const char* request, char** answer);

/* The rows of a placement file (hebe.placement/1), each held against what the request says of the
 * machine of now: with "outcome" holds, downgraded (its provenance is then estimated) or rejected,
 * and "reasons". */
int hebe_load_placement(const char* request, char** answer);

/* Freezes a campaign's specification, as `hebe campaign-plan` does. */
int hebe_plan(const char* request, hebe_interrupted interrupted, void* user, char** answer);

/* Measures the pending jobs of a frozen campaign, as `hebe campaign-submit` does. */
int hebe_run(const char* request, hebe_interrupted interrupted, void* user, char** answer);

/* Enqueues one call's work of arm 0 or 1 asynchronously onto `stream` (a CUstream; or what
 * hebe_sim_enqueue takes) and returns 0; anything else ends the measurement as case_failed. Called
 * on the thread that called hebe_measure or hebe_compare, until that returns; the device has then
 * finished all of it. */
typedef int (*hebe_enqueue)(void* user, void* stream, int arm);

/* Arm 0 against itself: energy and time of a call, with the marginal energy where the request asks
 * for an idle window. */
int hebe_measure(const char* request, hebe_enqueue enqueue, hebe_interrupted interrupted,
                 void* user, char** answer);
/* Arm 1 against arm 0: randomised pairs, gates, verdict. */
int hebe_compare(const char* request, hebe_enqueue enqueue, hebe_interrupted interrupted,
                 void* user, char** answer);

/* Whether hebe_measure and hebe_compare would take this request: 0 and {"checked": true}, or
 * what they refuse before any board is opened. No GPU is looked for, and nothing is measured. */
int hebe_check(const char* request, char** answer);

/* On the simulated GPU, from within hebe_enqueue: `works` launches one after another, each of its
 * `seconds` and drawing its `watts` beyond the idle board, and that `times` times, which costs the
 * host `host_seconds` in all: one entry of the driver's queue, as a captured graph is. 0, or an
 * exit code. */
int hebe_sim_enqueue(void* stream, const double* seconds, const double* watts, size_t works,
                     uint32_t times, double host_seconds);

#ifdef __cplusplus
}
#endif
#endif
