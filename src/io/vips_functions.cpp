#include "io/vips_functions.h"

#include "io/vips_input.h"
#include "io/vips_output.h"
#include "io/vips_picture.h"
#include "io/vips_session.h"
#include "ungrain/version.h"

namespace ungrain::io {

const VipsFunctions vips_table = {
    {.version = UNGRAIN_VERSION}, &open_vips, &create_vips, &has_vips_operation, &vips_picture,
};

}  // namespace ungrain::io
