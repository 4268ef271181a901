#include "io/vips_functions.h"

#include "io/vips_input.h"
#include "io/vips_output.h"
#include "io/vips_picture.h"
#include "io/vips_session.h"
#include "ungrain/version.h"

namespace ungrain::io {

const VipsFunctions vips_table = {
    .version = UNGRAIN_VERSION,
    .open = &open_vips,
    .create = &create_vips,
    .has_operation = &has_vips_operation,
    .browser_picture = &vips_picture,
};

}  // namespace ungrain::io
