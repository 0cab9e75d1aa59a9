# cmake --install: the headers, the compiled families if there are any, and the package that find_package(nihao) reads.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(NIHAO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/nihao)
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ${NIHAO_TARGETS} EXPORT nihaoTargets)
install(EXPORT nihaoTargets NAMESPACE nihao:: DESTINATION ${NIHAO_PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/nihaoConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/nihaoConfig.cmake
                              INSTALL_DESTINATION ${NIHAO_PACKAGE_DIR})
# Before 1.0 a minor version may change the interface. ARCH_INDEPENDENT only while there is no compiled library.
set(NIHAO_ARCH ARCH_INDEPENDENT)
if(TARGET nihao_compiled)
  set(NIHAO_ARCH "")
endif()
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/nihaoConfigVersion.cmake COMPATIBILITY SameMinorVersion ${NIHAO_ARCH})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nihaoConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/nihaoConfigVersion.cmake
        DESTINATION ${NIHAO_PACKAGE_DIR})
