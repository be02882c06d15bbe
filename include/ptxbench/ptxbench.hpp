/// @file
/// The whole C++ interface.
#pragma once

#include <ptxbench/agent.hpp>
#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/core.hpp>
#include <ptxbench/count.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/evaluate.hpp>
#include <ptxbench/llm.hpp>
#include <ptxbench/pack.hpp>
#include <ptxbench/plan.hpp>
#include <ptxbench/sass.hpp>
#include <ptxbench/trace.hpp>
#include <ptxbench/verify.hpp>
#include <ptxbench/worker.hpp>
