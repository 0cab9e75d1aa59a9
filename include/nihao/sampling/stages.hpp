// The stages of a sampler chain, by kind. Each is a small policy: a name, parameters, and apply(Candidates&, SamplerState&).
#pragma once

#include "bias.hpp"
#include "cuts.hpp"
#include "penalties.hpp"
#include "selectors.hpp"
#include "temperature.hpp"
