/*
 * The first line of a CSV file: the separator, the names of the columns, and the role of each column. A first column
 * without a name holds row labels, as R and pandas write them, and is skipped. If the header has one name less than the
 * rows have fields, the first field of all rows is skipped too.
 */
#include "data/csv_parts.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The separator that is most frequent in the line, outside quotes; otherwise spaces between words, otherwise a
 * comma. */
static char find_separator(const reader *r)
{
    static const char marks[] = {',', ';', '\t'};
    size_t count[sizeof marks] = {0}, words = 0;
    bool quoted = false, between = true;
    for (const char *p = r->at; p < r->end && *p != '\n' && *p != '\r'; p++) {
        quoted ^= *p == '"';
        for (size_t i = 0; i < sizeof marks; i++)
            count[i] += !quoted && *p == marks[i];
        const bool space = !quoted && *p == ' ';
        words += between && !space;
        between = space;
    }
    size_t best = 0;
    for (size_t i = 1; i < sizeof marks; i++)
        best = count[i] > count[best] ? i : best;
    return count[best] || words < 2 ? marks[best] : ' ';
}

typedef struct {
    slice name;
    size_t column;
} sorted_column;

static int compare_columns(const void *left, const void *right)
{
    const sorted_column *a = left, *b = right;
    const size_t common = a->name.length < b->name.length ? a->name.length : b->name.length;
    const int order = memcmp(a->name.text, b->name.text, common);
    if (order != 0)
        return order;
    if (a->name.length != b->name.length)
        return a->name.length < b->name.length ? -1 : 1;
    return a->column < b->column ? -1 : 1;
}

static hfsad_status check_duplicates(const reader *r)
{
    sorted_column *sorted = alloc_raw(r->n_columns, sizeof *sorted);
    if (!sorted)
        return error_memory(r->err, r->n_columns * sizeof *sorted, "the header");
    for (size_t c = 0; c < r->n_columns; c++)
        sorted[c] = (sorted_column){r->columns[c], c};
    qsort(sorted, r->n_columns, sizeof *sorted, compare_columns);
    hfsad_status status = HFSAD_OK;
    for (size_t i = 1; i < r->n_columns && !status; i++) {
        const sorted_column *a = &sorted[i - 1], *b = &sorted[i];
        if (a->name.length == b->name.length && memcmp(a->name.text, b->name.text, a->name.length) == 0)
            status = csv_column_error(
                r, b->column, "duplicate column: column %zu has the same name; rename or remove one", a->column + 1);
    }
    free(sorted);
    return status;
}

static const char *expected_header(const reader *r)
{
    return r->in->client.text || r->in->table.clients ? "y,x1,x2,..." : "edge,client,y,x1,x2,...";
}

static hfsad_status refuse_missing(const reader *r, column_role role, slice header)
{
    static const char *const keys[] = {
        [COLUMN_EDGE] = "edge", [COLUMN_CLIENT] = "client", [COLUMN_Y] = "y", [COLUMN_WEIGHT] = "weight"};
    bool stated;
    const char *name = columns_name(&r->in->table, role, &stated);
    char shown[EXCERPT_SIZE];
    excerpt(shown, header);
    if (stated)
        return csv_line_error(r, "no column \"%s\" in the header \"%s\"; data.%s names it", name, shown,
                              role == COLUMN_CLIENT && r->in->table.by ? "split.by" : keys[role]);
    for (size_t c = 0; c < r->n_columns && role != COLUMN_WEIGHT; c++)
        if (r->columns[c].length == strlen(name) && strncasecmp(r->columns[c].text, name, strlen(name)) == 0)
            return csv_column_error(r, c, "expected \"%s\", in lower case", name);
    if (role == COLUMN_EDGE || role == COLUMN_WEIGHT)
        return HFSAD_OK; /* without an edge, all clients are below the cloud; without a weight, all weights are 1 */
    return csv_line_error(r, "no column \"%s\" in the header \"%s\"; expected %s, or data: {%s%s}", name, shown,
                          expected_header(r), keys[role],
                          role == COLUMN_CLIENT ? ": COLUMN}, or data: {split: {clients: 10}" : ": COLUMN");
}

static hfsad_status add_special(reader *r, size_t column, column_role role, size_t index)
{
    if (!alloc_grow((void **)&r->specials, &r->specials_capacity, r->n_specials + 1, sizeof *r->specials))
        return error_memory(r->err, (r->n_specials + 1) * sizeof *r->specials, "the header");
    r->specials[r->n_specials++] = (special){column, role, index};
    return HFSAD_OK;
}

static bool is_label(slice name)
{
    return name.length == 0 || (name.length == 10 && memcmp(name.text, "Unnamed: 0", 10) == 0);
}

/* In a file of one client, a column that names clients is an error; it is skipped if the spec says that tables
 * have it. */
static hfsad_status own_role(const reader *r, size_t column, column_role *role)
{
    bool stated;
    if (!r->in->client.text || (*role != COLUMN_EDGE && *role != COLUMN_CLIENT))
        return HFSAD_OK;
    columns_name(&r->in->table, *role, &stated);
    if (!stated)
        return csv_column_error(r, column,
                                "this file belongs to a single client, named after the file; remove this column");
    *role = COLUMN_SKIPPED;
    return HFSAD_OK;
}

static hfsad_status assign_roles(reader *r, bool found[])
{
    column_role before = COLUMN_FEATURE;
    for (size_t c = 0; c < r->n_columns; c++) {
        size_t index = 0;
        column_role role = COLUMN_SKIPPED;
        if (c > 0 || !is_label(r->columns[c])) {
            if (r->columns[c].length == 0)
                return csv_column_error(r, c, "empty name in the header; expected a name for every column");
            role = columns_role(&r->in->memory, &r->in->table, r->columns[c], before == COLUMN_Y, &index);
        }
        before = role;
        hfsad_status status = own_role(r, c, &role);
        found[role] = true;
        if (role == COLUMN_FEATURE)
            r->n_features++;
        else if (!status)
            status = add_special(r, c, role, index);
        if (status)
            return status;
    }
    return HFSAD_OK;
}

/* A column with clients is needed, unless the file belongs to one client, its rows are dealt over clients, or its rows
 * are only predicted. */
static bool may_lack(const reader *r, column_role role)
{
    if (role == COLUMN_Y)
        return r->in->y_optional;
    return role == COLUMN_CLIENT && (r->in->client.text || r->in->table.clients || r->in->y_optional);
}

/* Finds the columns that are not features. */
static hfsad_status find_specials(reader *r, slice header)
{
    bool found[COLUMN_SKIPPED + 1] = {false};
    hfsad_status status = assign_roles(r, found);
    r->names_client = found[COLUMN_CLIENT];
    for (column_role role = COLUMN_EDGE; role <= COLUMN_WEIGHT && !status; role++)
        if (!found[role] && !may_lack(r, role) && !(r->in->client.text && role == COLUMN_EDGE))
            status = refuse_missing(r, role, header);
    if (!status && r->in->table.clients && (found[COLUMN_CLIENT] || found[COLUMN_EDGE]))
        return csv_line_error(r, "the rows name their %s, but data.split deals them over clients; remove one of both",
                              found[COLUMN_CLIENT] ? "clients" : "edges");
    slice name;
    const char *key;
    char shown[EXCERPT_SIZE], all[EXCERPT_SIZE];
    if (!status && columns_unmatched(&r->in->table, r->columns, r->n_columns, r->in->y_optional, &name, &key))
        return csv_line_error(r, "no column \"%s\" in the header \"%s\"; %s names it", excerpt(shown, name),
                              excerpt(all, header), key);
    if (!status)
        status = intake_y(r->in, r->name, found[COLUMN_Y]);
    return status ? status : check_duplicates(r);
}

/* Number of fields of the first row; 0: unknown. */
static size_t count_fields(const reader *r)
{
    reader walk = *r;
    slice field;
    size_t fields = 0;
    walk.err = NULL;
    if (csv_at_line_end(&walk, csv_skip_spaces(&walk, walk.at)))
        return 0;
    do {
        if (csv_read_text(&walk, fields, &field))
            return 0;
        fields++;
    } while (csv_take_separator(&walk));
    return fields;
}

static hfsad_status add_column(reader *r, size_t at, slice name)
{
    if (!alloc_grow((void **)&r->columns, &r->columns_capacity, r->n_columns + 1, sizeof *r->columns))
        return error_memory(r->err, (r->n_columns + 1) * sizeof *r->columns, "the header");
    memmove(r->columns + at + 1, r->columns + at, (r->n_columns - at) * sizeof *r->columns);
    r->columns[at] = name;
    r->n_columns++;
    return HFSAD_OK;
}

static hfsad_status read_names(reader *r)
{
    do {
        slice name = {"", 0};
        hfsad_status status = csv_read_text(r, r->n_columns, &name);
        if (!status)
            status = add_column(r, r->n_columns, name);
        if (status)
            return status;
        if (memchr(name.text, '\0', name.length))
            return csv_column_error(r, r->n_columns - 1, "a NUL byte; expected text in UTF-8");
    } while (csv_take_separator(r));
    return HFSAD_OK;
}

hfsad_status csv_read_header(reader *r)
{
    r->separator = ',';
    if (csv_at_line_end(r, csv_skip_spaces(r, r->at)))
        return csv_line_error(r, "the first line is blank; expected the header %s", expected_header(r));
    r->separator = find_separator(r);
    const char *start = r->at;
    hfsad_status status = read_names(r);
    if (status)
        return status;
    const slice header = {start, (size_t)(r->at - start)};
    reader body = *r;
    csv_next_line(&body);
    if (count_fields(&body) == r->n_columns + 1 && r->separator != ',') /* the form of R's write.table */
        status = add_column(r, 0, (slice){"", 0});
    if (!status)
        status = find_specials(r, header);
    for (size_t i = 0; i < r->in->memory.n_categories && !status; i++)
        r->n_features += r->in->memory.categories[i].n_levels - (r->in->memory.categories[i].n_levels > 0);
    if (status)
        return status;
    if (r->n_features == 0 && !r->in->scanning)
        return csv_line_error(r, "no column with a feature in the header; expected %s", expected_header(r));
    csv_next_line(r);
    r->body = r->at;
    return HFSAD_OK;
}
