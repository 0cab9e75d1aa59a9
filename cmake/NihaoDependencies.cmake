# Every dependency: what the system has (find_package), else FetchContent.
include(FetchContent)
