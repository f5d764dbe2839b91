# cmake --install: headers, libraries, package config and the binary. Two libraries, of which a program links one:
# blockdraft::drafter holds the drafter for engines of others, blockdraft::blockdraft holds everything.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS blockdraft EXPORT blockdraft-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS blockdraft_drafter EXPORT blockdraft-drafter-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS blockdraft-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/blockdraft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(export blockdraft-targets blockdraft-drafter-targets)
  install(EXPORT ${export} NAMESPACE blockdraft:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
endforeach()
configure_package_config_file(cmake/blockdraft-config.cmake.in ${PROJECT_BINARY_DIR}/blockdraft-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/blockdraft-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/blockdraft-config.cmake ${PROJECT_BINARY_DIR}/blockdraft-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/blockdraft)
