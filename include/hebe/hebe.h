/* The C interface of hebe's dispatch (include/hebe/dispatch.hpp says what holds). Strings are UTF-8
   and end with 0; those of a choice stay valid for the life of the process. */
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
/* 1 and *out (may be NULL), or 0: fall back. */
int hebe_dispatch_find(const char* operation, const int64_t* sizes, size_t count, const char* dtype,
                       hebe_choice* out);
void hebe_dispatch_on_missing(hebe_missing tell, void* user);

#ifdef __cplusplus
}
#endif
#endif
