/* The wall clock of a process and its children, set by whoever writes the file CLOCK_SHIM.
 *
 * To be preloaded. The file has the nanoseconds that the clock is ahead, 8 bytes in the order of the
 * machine. Waits until an instant of the wall clock end as under a kernel whose clock were that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
/* Seconds since the start of a machine are fewer, seconds since 1970 more. */
#define WALL_SECONDS 500000000LL

static volatile const int64_t *shared;

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
    real_cond_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    const char *path = getenv("CLOCK_SHIM");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        shared = mapped;
}

static int64_t ahead_ns(void) { return shared ? *shared : 0; }

static void add(struct timespec *at, int64_t ns) {
    int64_t sum = (int64_t)at->tv_sec * SECOND_NS + at->tv_nsec + ns;
    if (sum < 0)
        sum = 0;
    at->tv_sec = sum / SECOND_NS;
    at->tv_nsec = sum % SECOND_NS;
}

/* The deadline as the kernel's clock has it, in `own`. */
static const struct timespec *deadline(const struct timespec *at, struct timespec *own) {
    if (!at || at->tv_sec < WALL_SECONDS)
        return at;
    *own = *at;
    add(own, -ahead_ns());
    return own;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    /* Other libraries may ask before this one has begun. */
    int failed = real_gettime ? real_gettime(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        add(at, ahead_ns());
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec own;
    return real_sem_timedwait(semaphore, deadline(until, &own));
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec own;
    return real_cond_timedwait(condition, mutex, deadline(until, &own));
}

long syscall(long number, ...) {
    static long (*real_syscall)(long, ...);
    if (!real_syscall)
        real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long given[6];
    for (int index = 0; index < 6; index++)
        given[index] = va_arg(list, long);
    va_end(list);
    struct timespec own;
    if (number == SYS_futex && (given[1] & FUTEX_CLOCK_REALTIME))
        given[3] = (long)deadline((const struct timespec *)given[3], &own);
    return real_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
