# Header, libraries, program, CMake package and pkg-config file.

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hfsad)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES include/hfsad/hfsad.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hfsad)
install(TARGETS hfsad_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Two sets: only the static library needs libyaml, cJSON and the others to be found by who links it.
install(TARGETS hfsad EXPORT hfsadShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS hfsad_static EXPORT hfsadStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT hfsadShared NAMESPACE hfsad:: DESTINATION ${package_dir})
install(EXPORT hfsadStatic NAMESPACE hfsad:: DESTINATION ${package_dir})

configure_package_config_file(cmake/hfsadConfig.cmake.in ${PROJECT_BINARY_DIR}/hfsadConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hfsadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hfsadConfig.cmake ${PROJECT_BINARY_DIR}/hfsadConfigVersion.cmake
        DESTINATION ${package_dir})

# The prefix is written relative to the file itself, so that a moved installation still works.
file(RELATIVE_PATH pkgconfig_to_prefix /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/hfsad.pc.in ${PROJECT_BINARY_DIR}/hfsad.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hfsad.pc DESTINATION ${pkgconfig_dir})
