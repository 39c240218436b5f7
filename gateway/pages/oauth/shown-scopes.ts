/** The scopes that a consent page showed, sent back by its form. The answer covers only these. */
import { z } from 'zod'

/** The hidden field `scope`. Empty if the form does not have it. */
export const ShownScopes = z
  .string()
  .max(4096)
  .default('')
  .transform((text) => text.split(' ').filter((scope) => scope !== ''))
