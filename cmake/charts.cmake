# The chart library of the dashboard: uPlot of npm, by exact version and hash, built into the program and not committed.
# HFSAD_CHARTS is its archive if there is no network. Without it the program builds too; its pages then have tables
# instead of curves and say why.

set(UPLOT_VERSION 1.6.32)
set(UPLOT_SHA512 2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023)
set(HFSAD_CHARTS "" CACHE FILEPATH "uplot-${UPLOT_VERSION}.tgz, for a build without network")

# One copy for all build folders of this tree.
set(charts_archive ${PROJECT_SOURCE_DIR}/build/charts/uplot-${UPLOT_VERSION}.tgz)
set(charts_folder ${CMAKE_CURRENT_BINARY_DIR}/uplot-${UPLOT_VERSION})

function(charts_check archive result)
    set(hash "")
    if(EXISTS ${archive})
        file(SHA512 ${archive} hash)
    endif()
    string(COMPARE EQUAL "${hash}" ${UPLOT_SHA512} good)
    set(${result} ${good} PARENT_SCOPE)
endfunction()

if(HFSAD_CHARTS)
    set(charts_archive ${HFSAD_CHARTS})
    charts_check(${charts_archive} charts_good)
    if(NOT charts_good)
        message(FATAL_ERROR "HFSAD_CHARTS=${HFSAD_CHARTS} is not uplot-${UPLOT_VERSION}.tgz of npm")
    endif()
endif()
charts_check(${charts_archive} charts_good)
find_program(NPM npm)
if(NOT charts_good AND NPM)
    # In a folder of its own first: two builds may do this at once.
    string(RANDOM LENGTH 8 charts_word)
    file(MAKE_DIRECTORY ${charts_archive}.${charts_word})
    execute_process(COMMAND ${NPM} pack --silent uplot@${UPLOT_VERSION}
                    WORKING_DIRECTORY ${charts_archive}.${charts_word} OUTPUT_QUIET ERROR_QUIET TIMEOUT 60)
    charts_check(${charts_archive}.${charts_word}/uplot-${UPLOT_VERSION}.tgz charts_good)
    if(charts_good)
        file(RENAME ${charts_archive}.${charts_word}/uplot-${UPLOT_VERSION}.tgz ${charts_archive})
    endif()
    file(REMOVE_RECURSE ${charts_archive}.${charts_word})
endif()
if(charts_good)
    file(ARCHIVE_EXTRACT INPUT ${charts_archive} DESTINATION ${charts_folder})
    set(charts_built "uPlot ${UPLOT_VERSION}")
    set(charts_files /uplot.js ${charts_folder}/package/dist/uPlot.iife.min.js
                     /uplot.css ${charts_folder}/package/dist/uPlot.min.css)
else()
    message(WARNING "npm is missing or cannot fetch uplot@${UPLOT_VERSION}: the dashboard is built without charts; "
                    "install npm, or give the archive by -DHFSAD_CHARTS=FILE")
    set(charts_built "no charts")
    set(charts_files "")
endif()
