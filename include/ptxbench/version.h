/** @file
 * Version of the headers; ptxbench_version() and ptxbench_abi_version() give the library's. */
#ifndef PTXBENCH_VERSION_H
#define PTXBENCH_VERSION_H

#define PTXBENCH_VERSION_MAJOR 0
#define PTXBENCH_VERSION_MINOR 1
#define PTXBENCH_VERSION_PATCH 0
/** 0.x: the ABI is kept within a minor version only. */
#define PTXBENCH_ABI_VERSION 0

#endif
