// SPDX-License-Identifier: MIT
// mallinfo2, which Swift's Glibc module lacks.
#include <malloc.h>
