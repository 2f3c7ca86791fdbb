"""Compiler options of programs that run once: most of a test's time is their compilation.

LLVM polishes nothing, the older emitters write fusions directly (the newer ones go through
MLIR, which took two thirds of all compilation), and a program is one LLVM module. What the users'
compiler makes of a program is tested in `subprocesses.on_devices`, and by `make as-users`.
"""

OPTIONS = {
  "xla_backend_optimization_level": 0,
  "xla_llvm_disable_expensive_passes": True,
  "xla_cpu_use_fusion_emitters": False,
  "xla_cpu_parallel_codegen_split_count": 1,
}
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in OPTIONS.items())


def as_users(function):
  """Compiled by the emitters that users have.

  The older ones misread row numbers of 8 and 16 bits, and round some sums of noise otherwise.
  """
  import jax  # after tests/conftest.py has set the flags

  return jax.jit(function, compiler_options={"xla_cpu_use_fusion_emitters": True})
