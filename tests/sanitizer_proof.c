/*
 * Deliberately wrong in the way its argument names. CI builds it with the sanitizers' flags of the whole suite and
 * requires that it fails with their report: proof that a suite without reports was watched.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* volatile: what the compiler cannot know it cannot remove. */
static volatile int beyond = 4;
static volatile int largest = 0x7fffffff;

static int heap_overflow(void)
{
    size_t size = (size_t)beyond;
    char *block = malloc(size);
    if (block == NULL)
        return 1;
    memset(block, 1, size);
    int value = block[beyond];
    free(block);
    return value == -1;
}

static int signed_overflow(void)
{
    int sum = largest;
    sum += beyond;
    return sum == 0;
}

static int shared_count;

static void *count_up(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        shared_count++;
    return NULL;
}

static int data_race(void)
{
    pthread_t first, second;
    if (pthread_create(&first, NULL, count_up, NULL) != 0)
        return 1;
    if (pthread_create(&second, NULL, count_up, NULL) != 0)
        return 1;
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return shared_count == 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } faults[] = {
        {"heap-overflow", heap_overflow},
        {"signed-overflow", signed_overflow},
        {"data-race", data_race},
    };
    for (size_t i = 0; argc == 2 && i < sizeof faults / sizeof *faults; i++)
        if (strcmp(argv[1], faults[i].name) == 0)
            return faults[i].run();
    fprintf(stderr, "usage: sanitizer_proof heap-overflow|signed-overflow|data-race\n");
    return 0;
}
