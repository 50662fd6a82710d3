/* A user of the installed libhfsad-net: makes an authority and a certificate in the folder that it is given. */
#include <hfsad/net.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    hfsad_error err = {0};
    const char *const nodes[] = {"edge1/client7"};
    const hfsad_keys keys = {.size = sizeof keys, .folder = argc > 1 ? argv[1] : NULL, .force = true};
    char certificate[500], key[500];
    if (hfsad_keys_init(&keys, &err) || hfsad_keys_issue(keys.folder, nodes, 1, 0, false, NULL, &err) ||
        !hfsad_keys_files(keys.folder, nodes[0], certificate, key, sizeof key)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    FILE *f = fopen(certificate, "r");
    const hfsad_keys wrong = {.size = sizeof wrong, .folder = keys.folder, .port = 70000};
    const int good =
        f && hfsad_keys_init(&wrong, &err) == HFSAD_ERROR_INPUT && !hfsad_keys_revoke(keys.folder, nodes, 1, NULL);
    printf("hfsad-net: %s %s\n", certificate, good ? "made and revoked" : "is wrong");
    return f && !fclose(f) && good ? 0 : 1;
}
