/**
 * Schemas of ids in JSON bodies and headers, which are case-insensitive (RFC 9562 section 4). `router.ts` and
 * `body/read.ts` lower-case ids in paths, queries and forms.
 */
import { z } from 'zod'
import { asId } from '../../actors/domain/ids.js'

/** An id that has to be a UUID. */
export const uuid = () => z.uuid().overwrite(asId)

/** An id that the actor validates. */
export const idText = () => z.string().max(64).overwrite(asId)
