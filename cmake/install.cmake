# Headers, libraries, program, man pages, completions, CMake package and pkg-config files.

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hfsad)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES include/hfsad/hfsad.h include/hfsad/net.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hfsad)
install(TARGETS hfsad_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(MPI_FOUND)
    install(TARGETS hfsad_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hfsad)
endif()
install(FILES ${PROJECT_BINARY_DIR}/hfsad-cuda.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/hfsad OPTIONAL)
# Three sets: only a static library needs libyaml, cJSON and the others to be found by the program that links it.
install(TARGETS hfsad hfsad_net EXPORT hfsadShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hfsad_static EXPORT hfsadStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hfsad_net_static EXPORT hfsadNetStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(set hfsadShared hfsadStatic hfsadNetStatic)
    install(EXPORT ${set} NAMESPACE hfsad:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(cmake/hfsadConfig.cmake.in ${PROJECT_BINARY_DIR}/hfsadConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hfsadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hfsadConfig.cmake ${PROJECT_BINARY_DIR}/hfsadConfigVersion.cmake
        DESTINATION ${package_dir})

# Man pages and completions are the program's own words.
install(CODE "execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/pages $<TARGET_FILE:hfsad_program> ${PROJECT_BINARY_DIR}/pages
                              COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)

# The prefix is written relative to the file itself, so that a moved installation still works.
file(RELATIVE_PATH pkgconfig_to_prefix /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
foreach(name hfsad hfsad-net)
    configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkgconfig_dir})
endforeach()
