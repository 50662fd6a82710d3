/*
 * Folders are read in breadth-first order, and names within a folder are sorted. The rows therefore arrive in the order
 * of the leaves, and the tree does not depend on the order in which a file system lists names.
 */
#define _DEFAULT_SOURCE /* readdir, stat */
#include "data/folder.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/read_file.h"
#include "base/rng.h"
#include "data/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEPTH_MOST = HFSAD_TIERS_MAX - 1 /* depth of a folder; a client is one level deeper */ };

/* ---- order ---- */

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Compares runs of digits by value; both pointers move behind their run. */
static int compare_runs(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    size_t na = 0, nb = 0;
    while (is_digit((*a)[na]))
        na++;
    while (is_digit((*b)[nb]))
        nb++;
    const int order = na != nb ? (na < nb ? -1 : 1) : memcmp(*a, *b, na);
    *a += na;
    *b += nb;
    return order;
}

/* Compares numbers within names by value and everything else by bytes; names that are equal then, such as "a01" and
 * "a1", by bytes. */
static int compare_names(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (is_digit(*p) && is_digit(*q)) {
            const int order = compare_runs(&p, &q);
            if (order != 0)
                return order;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b);
}

static int compare_folders(const void *left, const void *right)
{
    return compare_names(((const tree_folder *)left)->path, ((const tree_folder *)right)->path);
}

/* Orders by the clients' names; files of the same client, which are refused later, by the whole name. */
static int compare_files(const void *left, const void *right)
{
    const tree_file *a = left, *b = right;
    char ends[2] = {a->name[a->stem], b->name[b->stem]};
    a->name[a->stem] = b->name[b->stem] = '\0';
    const int order = compare_names(a->name, b->name);
    a->name[a->stem] = ends[0];
    b->name[b->stem] = ends[1];
    return order != 0 ? order : strcmp(a->name, b->name);
}

/* ---- listing ---- */

static hfsad_status add_folder(folder_tree *t, size_t parent, const char *name, const struct stat *info,
                               const char *full, hfsad_error *err)
{
    for (size_t up = parent;; up = t->folders[up].parent) {
        if (t->folders[up].device == (uint64_t)info->st_dev && t->folders[up].inode == (uint64_t)info->st_ino)
            return error_set(err, HFSAD_ERROR_INPUT, "%.*s: a link to a folder that contains it; remove it", NAME_SHOWN,
                             full);
        if (up == 0)
            break;
    }
    if (t->folders[parent].depth == DEPTH_MOST)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: too deep; expected at most %d nested folders", NAME_SHOWN, full,
                         DEPTH_MOST);
    if (!alloc_grow((void **)&t->folders, &t->folders_capacity, t->n_folders + 1, sizeof *t->folders))
        return error_memory(err, (t->n_folders + 1) * sizeof *t->folders, "the list of folders");
    tree_folder *added = &t->folders[t->n_folders];
    *added = (tree_folder){.path = path_join(t->folders[parent].path, name),
                           .parent = parent,
                           .depth = t->folders[parent].depth + 1,
                           .device = (uint64_t)info->st_dev,
                           .inode = (uint64_t)info->st_ino};
    if (!added->path)
        return error_memory(err, strlen(full), "a path");
    t->n_folders++;
    return HFSAD_OK;
}

uint64_t file_stamp(const struct stat *info)
{
    const uint64_t parts[] = {(uint64_t)info->st_size, (uint64_t)info->st_ino, (uint64_t)info->st_mtim.tv_sec,
                              (uint64_t)info->st_mtim.tv_nsec};
    uint64_t stamp = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        stamp = rng_mix(stamp + parts[i] + 1);
    return stamp;
}

static hfsad_status add_file(folder_tree *t, size_t folder, const char *name, const struct stat *info, const char *full,
                             hfsad_error *err)
{
    size_t stem;
    char ends[100];
    const data_format *format = format_of(name, &stem);
    format_ends(ends, sizeof ends);
    if (!format)
        return error_set(err, HFSAD_ERROR_INPUT,
                         "%.*s: not a data file by its name; expected %s (names that begin with a dot are skipped)",
                         NAME_SHOWN, full, ends);
    if (!S_ISREG(info->st_mode))
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: neither a file nor a folder; remove it", NAME_SHOWN, full);
    if (!alloc_grow((void **)&t->files, &t->files_capacity, t->n_files + 1, sizeof *t->files))
        return error_memory(err, (t->n_files + 1) * sizeof *t->files, "the list of files");
    tree_file *added = &t->files[t->n_files];
    *added = (tree_file){.name = strdup(name),
                         .folder = folder,
                         .stem = stem,
                         .bytes = (size_t)info->st_size,
                         .stamp = file_stamp(info),
                         .format = format};
    if (!added->name)
        return error_memory(err, strlen(name), "a file's name");
    t->n_files++;
    t->folders[folder].files++;
    return HFSAD_OK;
}

static hfsad_status add_name(folder_tree *t, size_t folder, const char *top, const char *name, hfsad_error *err)
{
    char *full = path_join(top, t->folders[folder].path, name);
    if (!full)
        return error_memory(err, strlen(name), "a path");
    struct stat info;
    hfsad_status status;
    if (stat(full, &info) != 0)
        status = error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, full, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = add_folder(t, folder, name, &info, full, err);
    else
        status = add_file(t, folder, name, &info, full, err);
    free(full);
    return status;
}

static hfsad_status list(folder_tree *t, size_t folder, const char *top, const char *full, hfsad_error *err)
{
    DIR *open = opendir(full);
    if (!open)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, full, strerror(errno));
    const size_t folders = t->n_folders, files = t->n_files;
    hfsad_status status = HFSAD_OK;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(open);
        if (!entry && errno != 0)
            status = error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, full, strerror(errno));
        if (!entry || status)
            break;
        if (entry->d_name[0] != '.' && (status = add_name(t, folder, top, entry->d_name, err)))
            break;
    }
    closedir(open);
    char ends[100];
    format_ends(ends, sizeof ends);
    if (!status && t->n_folders == folders && t->n_files == files)
        status =
            error_set(err, HFSAD_ERROR_INPUT, "%.*s: an empty folder; expected clients' files (%s) or folders of them",
                      NAME_SHOWN, full, ends);
    if (t->n_folders > folders)
        qsort(t->folders + folders, t->n_folders - folders, sizeof *t->folders, compare_folders);
    if (t->n_files > files)
        qsort(t->files + files, t->n_files - files, sizeof *t->files, compare_files);
    return status;
}

hfsad_status folder_scan(folder_tree *t, const char *path, hfsad_error *err)
{
    *t = (folder_tree){0};
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set(err, HFSAD_ERROR_INPUT, "%.*s: cannot be read: %s", NAME_SHOWN, path, strerror(errno));
    if (!alloc_grow((void **)&t->folders, &t->folders_capacity, 1, sizeof *t->folders))
        return error_memory(err, sizeof *t->folders, "the list of folders");
    t->folders[0] = (tree_folder){.path = strdup(""), .device = (uint64_t)info.st_dev, .inode = (uint64_t)info.st_ino};
    if (!t->folders[0].path)
        return error_memory(err, 1, "a path");
    t->n_folders = 1;
    hfsad_status status = HFSAD_OK;
    for (size_t i = 0; i < t->n_folders && !status; i++) {
        char *full = path_join(path, t->folders[i].path);
        status = full ? list(t, i, path, full, err) : error_memory(err, strlen(path), "a path");
        free(full);
    }
    return status;
}

void folder_free(folder_tree *t)
{
    for (size_t i = 0; i < t->n_folders; i++)
        free(t->folders[i].path);
    for (size_t i = 0; i < t->n_files; i++)
        free(t->files[i].name);
    free(t->folders);
    free(t->files);
}
