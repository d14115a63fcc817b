include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS truenorm EXPORT truenorm-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/truenorm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT truenorm-targets NAMESPACE truenorm:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/truenorm)

configure_package_config_file(cmake/truenorm-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/truenorm-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/truenorm)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/truenorm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/truenorm-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/truenorm-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/truenorm)

# Paths in the .pc file are relative to its own place, so that an installed tree can be moved.
if(BUILD_SHARED_LIBS)
  set(TRUENORM_PC_CFLAGS "")
  set(TRUENORM_PC_LIBS "-L\${libdir} -ltruenorm")
else()
  set(TRUENORM_PC_CFLAGS " -DTRUENORM_STATIC")
  set(TRUENORM_PC_LIBS "-L\${libdir} -ltruenorm -lstdc++ -lm -lpthread")
endif()
file(RELATIVE_PATH TRUENORM_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/truenorm.pc.in ${CMAKE_CURRENT_BINARY_DIR}/truenorm.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/truenorm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
