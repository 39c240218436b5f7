/** What a question named, as its form brings it back: an answer counts for that and nothing more. */
import { z } from 'zod'

/** The hidden field `scope` of a question; empty where the form comes without it. */
export const ShownScopes = z
  .string()
  .max(4096)
  .default('')
  .transform((text) => text.split(' ').filter((scope) => scope !== ''))
