# Flags of every target: an interface library, linked privately.
add_library(truenorm_flags INTERFACE)
target_compile_features(truenorm_flags INTERFACE cxx_std_20 c_std_99)
target_compile_options(truenorm_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  # The order of operations is the specification: no contraction into fused multiply-adds, no re-association.
  -ffp-contract=off -fno-fast-math)
if(TRUENORM_WERROR)
  target_compile_options(truenorm_flags INTERFACE -Werror)
endif()
if(TRUENORM_SANITIZE)
  target_compile_options(truenorm_flags INTERFACE
    -fsanitize=${TRUENORM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  if(TRUENORM_SANITIZE MATCHES "address")
    # Following the scope of every temporary vector of the kernels takes minutes and finds nothing: none has its address kept.
    target_compile_options(truenorm_flags INTERFACE -fno-sanitize-address-use-after-scope)
  endif()
  target_link_options(truenorm_flags INTERFACE -fsanitize=${TRUENORM_SANITIZE})
endif()
