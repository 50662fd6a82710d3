/* A folder tree as a federation: folders are inner nodes, files are clients. */
#ifndef HFSAD_DATA_FOLDER_H
#define HFSAD_DATA_FOLDER_H

#include "data/format.h"
#include "data/names.h"

typedef struct {
    char *path;    /* path below the top: "region2/edge1"; "" for the top itself */
    size_t parent; /* index in folders; the top is its own parent */
    size_t depth;  /* 0 for the top */
    size_t files;
    uint64_t device, inode;
} tree_folder;

typedef struct {
    char *name; /* with its extension */
    size_t folder, stem, bytes;
    uint64_t stamp; /* file_stamp */
    const data_format *format;
} tree_file;

typedef struct {
    tree_folder *folders; /* in breadth-first order */
    size_t n_folders, folders_capacity;
    tree_file *files; /* in the order of the folders */
    size_t n_files, files_capacity;
} folder_tree;

/* Lists a folder and everything below it, sorted by name (client2 before client10). Errors: a file that is not data, an
 * empty folder, a loop, more levels than allowed. Call folder_free also after a failure. */
hfsad_status folder_scan(folder_tree *t, const char *path, hfsad_error *err);
void folder_free(folder_tree *t);
struct stat;
/* A number made of size, modification time and inode of a file; it differs for a file that was changed or copied. */
uint64_t file_stamp(const struct stat *info);

#endif
