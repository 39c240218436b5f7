/** Which application gets identity assertions for another authorization server (docs/guides/oauth/identity-assertions.md). */
import { z } from 'zod'
import { Aal, texts } from './access-policy.js'
import { type Draft, entity, type Row } from './entity.js'

export const identityAssertionPolicy = entity({
  name: 'identity_assertion_policy',
  table: 'identity_assertion_policies',
  schema: 'IdentityAssertionPolicy',
  omitted: ['acr'],
  members: {
    client_id: z.uuid().meta({ description: 'The application of this tenant that asks.' }),
    audience: z.string().min(1).max(512).meta({
      description:
        'The issuer of the other authorization server, an https URL. An application has one policy for each.',
      example: 'https://auth.chat.example',
    }),
    target_client_id: z
      .string()
      .min(1)
      .max(2_048)
      .meta({ description: 'The client_id of the application at the other server.' }),
    resources: texts(512)
      .meta({ description: 'Resources of assertions. Empty: assertions name none.' })
      .default([]),
    scopes: texts(255).min(1).meta({ description: 'Scopes of assertions.' }),
    acr: Aal.nullable()
      .meta({ description: 'The least assurance level of the sign-in of the user.' })
      .default(null),
  },
})

export type IdentityAssertionPolicyMembers = (typeof identityAssertionPolicy)['members']
export type IdentityAssertionPolicy = Row<IdentityAssertionPolicyMembers>
export type IdentityAssertionPolicyDraft = Draft<IdentityAssertionPolicyMembers>
