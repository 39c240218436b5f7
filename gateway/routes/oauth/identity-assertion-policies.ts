/** Which applications get identity assertions for which authorization servers. */
import {
  identityAssertionPolicy,
  type IdentityAssertionPolicyMembers,
} from '../../../actors/domain/entities/identity-assertion-policy.js'
import {
  identityAssertionPolicies,
  type PolicyRefused,
} from '../../../actors/oauth/resources/identity-assertion-policies/protocol.js'
import { entityRoutes } from '../../entity-routes.js'
import { problem, type Route } from '../../route.js'
import { federationManagers, federationReaders } from './trusted-issuers.js'

export const identityAssertionPolicyRoutes: readonly Route[] = entityRoutes<
  IdentityAssertionPolicyMembers,
  PolicyRefused
>(identityAssertionPolicies, {
  entity: identityAssertionPolicy,
  path: '/api/v1/identity-assertion-policies',
  noun: { a: 'an', one: 'identity assertion policy', many: 'identity assertion policies' },
  operationIds: {
    list: 'listIdentityAssertionPolicies',
    create: 'createIdentityAssertionPolicy',
    read: 'getIdentityAssertionPolicy',
    update: 'updateIdentityAssertionPolicy',
    remove: 'deleteIdentityAssertionPolicy',
  },
  texts: {
    create: {
      summary: 'Let an application get identity assertions for another authorization server',
      description:
        'The application exchanges an ID token or a refresh token of its user at /oauth/token for an ID-JAG ' +
        '(`requested_token_type` urn:ietf:params:oauth:token-type:id-jag) with the resources and scopes of the policy.',
    },
    update: { description: 'Absent members stay unchanged.' },
    remove: { description: 'Assertions that were issued before end within five minutes.' },
    conflict:
      'The application has a policy for this audience already, or an application or API resource of this service has the audience.',
  },
  capabilities: ['oauth.identity_assertion_issuer'],
  readers: federationReaders,
  managers: federationManagers,
  refusals: {
    client_unknown: problem(422, 'unprocessable-content', {
      detail: 'client_id is no active confidential application of this tenant.',
      errors: [{ pointer: '#/client_id', detail: 'must be an active confidential application' }],
    }),
  },
})
