#include "redistribute/partition.hpp"
