// The library's front door: load a model, talk with it. The CPU side alone; everything else has a header of its own.
#pragma once

#include "engine/session.hpp"
#include "models/load.hpp"
