/** Names that a tenant chooses and other people read. */
import { z } from 'zod'
import { chosenName } from '../../actors/domain/shown-names.js'

/** The name of a tenant, organization, application, agent, identity provider or brand. */
export const ChosenName = z
  .string()
  .normalize('NFC')
  .trim()
  .min(1)
  .refine((name) => chosenName(name) !== null, {
    message:
      'must have 1 to 120 characters, without control and bidirectional formatting characters, and no address ' +
      '(`://`, `www.`, `@`, or a host followed by a slash)',
  })
  .meta({
    description:
      '1 to 120 characters, without control and bidirectional formatting characters, and no address (`://`, `www.`, ' +
      '`@`, or a host followed by a slash). Stored in NFC, without spaces at its ends.',
  })
