/** Names that a tenant chooses and other people read. */
import { z } from 'zod'
import { chosenName, NAME_RULE, SHOWN_NAME } from '../shown-names.js'

const RULE =
  '1 to 120 characters, without control and bidirectional formatting characters, and no address (`://`, `www.`, ' +
  '`@`, or a host followed by a slash). Stored in NFC, without spaces at its ends.'

/** The name of a tenant, organization, application, agent, identity provider or brand. */
export const ChosenName = z
  .string()
  .normalize('NFC')
  .trim()
  .min(1)
  .refine((name) => chosenName(name) !== null, {
    message: NAME_RULE,
  })
  .meta({ description: RULE })

/** A name that is stored as it is sent. */
export const DisplayName = z.string().regex(SHOWN_NAME).meta({
  description: '1 to 120 characters, without control and bidirectional formatting characters',
})

/** The name in a change. The actor holds new names to the rule, and lets the stored one pass (`changedName`). */
export const ChangedName = z
  .string()
  .min(1)
  .max(500)
  .meta({ description: `${RULE} A stored name that breaks this rule may stay.` })
