# The warnings of a strict host. nihao's headers are not system headers here, so they are held to them too.
set(CMAKE_NO_SYSTEM_FROM_IMPORTED ON)
function(strict target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Werror)
endfunction()
