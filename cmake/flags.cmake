# hfsad_flags: how every file of this project is compiled.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(hfsad_flags INTERFACE)

# Same inputs, same bits: nothing that lets the compiler change a rounding. Not setting errno and not keeping the
# order of floating-point traps change no result, and let loops with sqrt and conditions become vector code.
target_compile_options(hfsad_flags INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)

target_compile_options(hfsad_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes
                                             $<$<BOOL:${HFSAD_WERROR}>:-Werror>)

# Hardening: an overflow or a stale pointer ends the process before it is of use to an attacker. tests/install/hardened
# checks the binaries. Sanitizers bring their own checks.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()
set(hardening -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -ftrivial-auto-var-init=zero)
set(HFSAD_HARDENING "")
foreach(flag ${hardening})
    string(MAKE_C_IDENTIFIER "HAVE${flag}" known)
    check_c_compiler_flag("-Werror ${flag}" ${known})
    if(${known})
        list(APPEND HFSAD_HARDENING ${flag})
    endif()
endforeach()
# The kernels (src/core/kernels_*.c) compute on arrays of their caller and read no bytes of others; zeroing their vectors
# before use costs a round 10 to 20% of its time.
set(HFSAD_HARDENING_KERNELS "")
if(NOT HFSAD_SANITIZE AND "-ftrivial-auto-var-init=zero" IN_LIST HFSAD_HARDENING)
    set(HFSAD_HARDENING_KERNELS -ftrivial-auto-var-init=uninitialized)
endif()
if(NOT HFSAD_SANITIZE)
    target_compile_options(hfsad_flags INTERFACE ${HFSAD_HARDENING}
                                                 $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
    target_link_options(hfsad_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()

if(HFSAD_SANITIZE)
    # libFuzzer brings a main of its own: all code is instrumented for it, only fuzz targets are linked with it.
    string(REPLACE "fuzzer" "fuzzer-no-link" sanitize "${HFSAD_SANITIZE}")
    set(HFSAD_SANITIZE_FLAGS -fsanitize=${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(hfsad_flags INTERFACE ${HFSAD_SANITIZE_FLAGS})
    target_link_options(hfsad_flags INTERFACE ${HFSAD_SANITIZE_FLAGS})
endif()
