import { z } from 'zod'

/** A time that a client writes: RFC 3339 section 5.6 with `Z` or an offset, such as the `+00:00` of Python and Go. */
export const Moment = z.iso.datetime({ offset: true })
