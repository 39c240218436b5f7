/** The query of a list of events in their order, for receivers that poll. */
import { z } from 'zod'

/** Events of an answer. */
export const EVENTS_MAX = 200

/** @param after description of the position. */
export const eventsQuery = (after: string) =>
  z.object({
    after: z
      .string()
      .regex(/^(0|[1-9][0-9]{0,14})$/)
      .transform(Number)
      .optional()
      .meta({ description: after }),
    limit: z
      .string()
      .regex(/^[1-9][0-9]{0,8}$/)
      .transform((limit) => Math.min(Number(limit), EVENTS_MAX))
      .optional()
      .meta({ description: `Events of an answer, at most ${EVENTS_MAX}, the default.` }),
  })
