# cmake --install: headers, library, package config and the binary.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS blockdraft EXPORT blockdraft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS blockdraft-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/blockdraft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT blockdraft-targets NAMESPACE blockdraft:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
configure_package_config_file(cmake/blockdraft-config.cmake.in ${PROJECT_BINARY_DIR}/blockdraft-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/blockdraft-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/blockdraft-config.cmake ${PROJECT_BINARY_DIR}/blockdraft-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
