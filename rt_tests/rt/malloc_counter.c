/* Counts what the watched thread asks of the memory manager, by LD_PRELOAD.
 *
 *   cc -shared -fPIC -O2 -o malloc_counter.so malloc_counter.c -ldl
 *
 * Only what happens between two marks is counted as inside the loop, what comes before the first or after the last one
 * belongs to Python around it. mc_watch(how) starts with the calling thread, mc_watch(0) ends; mc_count(kind) reads the
 * counts from any thread. Marks are
 *
 *   how 1   readings of the clock: every tick makes many (virtual clock, replay)
 *   how 2   absolute sleeps: one a tick on the real clock. Waiting for the GIL reads the clock as well, but never sleeps.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { MALLOC, CALLOC, REALLOC, FREE, ALIGNED, MMAP, MUNMAP, BRK, MARK, N_KINDS };
enum { BY_CLOCK = 1, BY_SLEEP = 2 };

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* initial-exec: reading it must not allocate */
static __thread int watched __attribute__((tls_model("initial-exec")));
static long pending[N_KINDS], counted[N_KINDS];
static int begun;

static void note(int kind) {
  if (watched && begun) pending[kind]++;
}

void *malloc(size_t n) { note(MALLOC); return __libc_malloc(n); }
void *calloc(size_t n, size_t size) { note(CALLOC); return __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { note(REALLOC); return __libc_realloc(p, n); }
void free(void *p) { if (p) note(FREE); __libc_free(p); }
void *memalign(size_t a, size_t n) { note(ALIGNED); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { note(ALIGNED); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  note(ALIGNED);
  *p = __libc_memalign(a, n);
  return *p ? 0 : 12;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
  REAL(mmap);
  note(MMAP);
  return real(at, n, prot, flags, fd, offset);
}
int munmap(void *at, size_t n) {
  REAL(munmap);
  note(MUNMAP);
  return real(at, n);
}
int brk(void *to) {
  REAL(brk);
  note(BRK);
  return real(to);
}
void *sbrk(intptr_t by) {
  REAL(sbrk);
  note(BRK);
  return real(by);
}

/* a mark: what was asked for since the mark before belongs to the loop */
static void mark(void) {
  if (begun)
    for (int k = 0; k < N_KINDS; k++) counted[k] += pending[k];
  memset(pending, 0, sizeof(pending));
  begun = 1;
  counted[MARK]++;
}

int clock_gettime(clockid_t which, struct timespec *t) {
  REAL(clock_gettime);
  if (watched == BY_CLOCK) mark();
  return real(which, t);
}
int clock_nanosleep(clockid_t which, int flags, const struct timespec *to, struct timespec *left) {
  REAL(clock_nanosleep);
  if (watched == BY_SLEEP) mark();
  return real(which, flags, to, left);
}

void mc_watch(int how) {
  begun = 0;
  memset(pending, 0, sizeof(pending));
  watched = how;
}
void mc_clear(void) { memset(counted, 0, sizeof(counted)); }
long mc_count(int kind) { return kind >= 0 && kind < N_KINDS ? counted[kind] : -1; }
