/* Every order in which a reader of a latest-value slot may see the stores of its writer, by the memory model of C11.

   The functions are those of cython_kernels/rings/ring.pyx, as Cython has translated them (RING_C); only the atomic
   operations are ours. The writer runs first and leaves its stores, each with what a reader that sees it must see as
   well (its view). The reader then runs again and again, until each of its loads has returned each store it may return:
   none older than what it must see by now. The writer reads nothing of the reader's, so this is all there is; what a
   processor or compiler may do beyond (a load that takes from a store made after it because of it) needs a cycle through
   the reader. */

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RELAXED, ACQUIRE, RELEASE };
static uint64_t model_load(const void* p, int order);
static void model_store(void* p, uint64_t v, int order);
static void model_fence(int order);

#define TORQUELOOP_ATOMIC_H
#define TL_LOAD_ACQUIRE(p)      ((__typeof__(*(p)))model_load((p), ACQUIRE))
#define TL_LOAD_RELAXED(p)      ((__typeof__(*(p)))model_load((p), RELAXED))
#define TL_STORE_RELEASE(p, v)  model_store((p), (uint64_t)(v), RELEASE)
#define TL_STORE_RELAXED(p, v)  model_store((p), (uint64_t)(v), RELAXED)
#define TL_FENCE_ACQUIRE()      model_fence(ACQUIRE)
#define TL_FENCE_RELEASE()      model_fence(RELEASE)
#include RING_C

/* a slot's words: its number, its stamp, its values */
enum { WORDS = 2, PLACES = WORDS + 2, STORES = 64, DEPTH = 256 };

typedef struct { int at[PLACES]; } view_t;             /* of each place, the oldest store that may still be seen */
typedef struct { uint64_t value; view_t view; } stored_t;

static SLOT_T slot;
static uint64_t words[PLACES];
static stored_t history[PLACES][STORES];
static int n_stored[PLACES];
static int writing;
static view_t writer, released, reader, pending;
static int weakened;                                    /* what is left out on purpose: see WEAK_ */
static int choice[DEPTH], n_choices[DEPTH], depth, tries, tries_max;
static jmp_buf pruned;

enum { WEAK_NOTHING, WEAK_STORE, WEAK_LOAD, WEAK_RELEASE_FENCE, WEAK_ACQUIRE_FENCE };

static int place(const void* p) {
    for (int i = 0; i < PLACES; i++)
        if (p == &words[i]) return i;
    abort();
}

static void join(view_t* a, const view_t* b) {
    for (int i = 0; i < PLACES; i++)
        if (b->at[i] > a->at[i]) a->at[i] = b->at[i];
}

static void model_store(void* p, uint64_t v, int order) {
    int at = place(p);
    stored_t* s = &history[at][n_stored[at]];
    if (!writing || n_stored[at] == STORES) abort();
    writer.at[at] = n_stored[at]++;
    s->value = v;
    s->view = released;                                 /* a fence before it, and the store itself */
    if (order == RELEASE && weakened != WEAK_STORE) s->view = writer;
    s->view.at[at] = writer.at[at];
    memcpy(p, &v, 8);                                   /* the writer reads its own number back without an atomic */
}

static uint64_t model_load(const void* p, int order) {
    int at = place(p);
    stored_t* s;
    if (writing) abort();
    if (at == 0 && order == ACQUIRE && ++tries > tries_max) longjmp(pruned, 1);
    if (depth == DEPTH) abort();
    n_choices[depth] = n_stored[at] - reader.at[at];
    reader.at[at] += choice[depth++];
    s = &history[at][reader.at[at]];
    join(&pending, &s->view);
    if (order == ACQUIRE && weakened != WEAK_LOAD) join(&reader, &s->view);
    return s->value;
}

static void model_fence(int order) {
    if (writing && order == RELEASE && weakened != WEAK_RELEASE_FENCE) released = writer;
    if (!writing && order == ACQUIRE && weakened != WEAK_ACQUIRE_FENCE) join(&reader, &pending);
}

/* The next sequence of choices; 0 when all were made. */
static int advance(void) {
    while (depth > 0) {
        depth--;
        if (++choice[depth] < n_choices[depth]) {
            memset(choice + depth + 1, 0, sizeof choice - (size_t)(depth + 1) * sizeof choice[0]);
            return 1;
        }
        choice[depth] = 0;
    }
    return 0;
}

/* `writes` values are written, `reads` calls of slot_read with at most `attempts` looks each may see them; found:
   executions, torn values, versions that went back, reads without a value, reads of the newest value. */
void explore(int writes, int reads, int attempts, int weak, int64_t found[5]) {
    double value[WORDS];
    memset(&slot, 0, sizeof slot);
    memset(words, 0, sizeof words);
    memset(history, 0, sizeof history);
    memset(&writer, 0, sizeof writer);
    memset(&released, 0, sizeof released);
    memset(choice, 0, sizeof choice);
    memset(found, 0, 5 * sizeof found[0]);
    slot.n = WORDS;
    slot.word = words;
    weakened = weak;
    for (int i = 0; i < PLACES; i++) n_stored[i] = 1;   /* what the slot is made with */
    writing = 1;
    for (int k = 1; k <= writes; k++) {
        for (int i = 0; i < WORDS; i++) value[i] = 10.0 * k + i;
        SLOT_WRITE(&slot, value, k);
    }
    writing = 0;
    do {
        uint64_t newest = 0;
        memset(&reader, 0, sizeof reader);
        memset(&pending, 0, sizeof pending);
        depth = 0;
        for (int n = 0; n < reads; n++) {
            int64_t stamp = 0;
            uint64_t version;
            tries = 0;
            tries_max = attempts;
            if (setjmp(pruned)) break;                  /* it would look once more: another sequence of choices */
            version = SLOT_READ(&slot, value, &stamp);
            found[3] += version == 0;
            found[4] += version == (uint64_t)writes;
            if (version == 0) continue;
            int whole = stamp == (int64_t)version;
            for (int i = 0; i < WORDS; i++) whole &= value[i] == 10.0 * (double)version + i;
            found[1] += !whole;
            found[2] += version < newest;
            newest = version;
        }
        found[0]++;
    } while (advance());
}
