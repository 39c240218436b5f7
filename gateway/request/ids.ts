/**
 * Ids in JSON bodies and headers, in whatever case they come (RFC 9562 section 4). Those in paths,
 * queries and forms are read so by `router.ts` and `body/read.ts`.
 */
import { z } from 'zod'
import { asId } from '../../actors/domain/ids.js'

/** An id that has to be a UUID. */
export const uuid = () => z.uuid().overwrite(asId)

/** An id of which the actor says what is wrong with it. */
export const idText = () => z.string().max(64).overwrite(asId)
