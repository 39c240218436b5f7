/** The HTTP side of a gateway thread, built from the settings and the actors that the thread can ask. */
import { checkout } from '../../../actors/commerce/payments/checkout/protocol.js'
import { commerce } from '../../../actors/commerce/payments/protocol.js'
import { payouts } from '../../../actors/commerce/payments/payouts/protocol.js'
import { x402 } from '../../../actors/commerce/payments/x402/protocol.js'
import { hasPhone } from '../../../actors/identity/sign-in/ways/phone/settings.js'
import { type Gateway, type GatewayOptions, openGateway } from '../../../gateway/gateway.js'
import { isForOperators } from '../../../gateway/request/administration.js'
import type { Route } from '../../../gateway/route.js'
import { routes } from '../../../gateway/route-table.js'
import { withAnchorTypes } from '../../../gateway/routes/agents/agent-shapes.js'
import { withEgressSizes } from '../../../gateway/routes/vault/egress.js'
import type { Plane } from '../configuration/deployment.js'
import { eventTypesOf, featureDetails } from '../configuration/feature-details.js'
import { registriesIn } from '../configuration/registries.js'
import type { Settings } from '../configuration/settings.js'
import type { ActorRef } from '../../kernel/actor.js'
import type { System } from '../../kernel/system.js'
import { isServed, placementsWith, planesOf } from '../planes.js'
import { egressSizesOf, frontDoorOptions } from './front-door.js'

type GatewayParts = Pick<
  GatewayOptions,
  'clock' | 'devMailbox' | 'log' | 'metrics' | 'random' | 'shared'
> & {
  readonly settings: Settings
  readonly plane: Plane
  readonly system: Pick<System, 'ref'>
}

/** The gateway of this thread. It does not listen yet. */
export function gatewayOf({ settings, plane, system, ...parts }: GatewayParts): Gateway {
  const { openapi, session_cookie } = settings
  const planes = planesOf(plane)
  const placed = placementsWith(settings)
  const refs = new Map<string, ActorRef<never>>(
    placed
      .filter((placement) => placement.planes.some((one) => planes.includes(one)))
      .map(({ definition: { address } }) => [address.name, system.ref(address) as ActorRef<never>]),
  )
  const actors = new Set(placed.map(({ definition }) => definition.address.name))
  const sized = withEgressSizes(routes, egressSizesOf(settings))
  const hasRegistries = registriesIn(settings.chains).length > 0
  const described = withAnchorTypes(sized, hasRegistries).filter(
    (route) =>
      isRouteEnabled(route, settings) &&
      (route.target.via === 'gateway' || actors.has(route.target.address.name)),
  )
  return openGateway({
    ...parts,
    ...frontDoorOptions(settings, system),
    // Only the control plane describes the operator API (docs/reference/runtime.md).
    openapi: planes.includes('control') ? openapi : { ...openapi, exposure: 'public' },
    capabilities: enabledCapabilities(settings),
    featureDetails: featureDetails(settings),
    events: eventTypesOf(settings),
    isProduction: settings.security.production,
    hasDefaultTenant: settings.tenant.default_tenant_slug !== undefined,
    sessionCookieSecs: session_cookie.enabled ? session_cookie.absolute_secs : undefined,
    described,
    routes: described.filter(
      ({ target }) => target.via === 'gateway' || isServed(plane, target.address.name),
    ),
    refs,
    plane,
  })
}

/** Capabilities that depend on settings and not on routes. */
function enabledCapabilities(settings: Settings): readonly string[] {
  const { social, generic_oauth, enterprise_sso, verified_domains, dpop, oidc } = settings
  const { user_self_service } = settings
  const { phone, sms, siwe, anonymous, adaptive_mfa } = settings
  const names = {
    console: settings.console.enabled,
    credential_issuer: settings.credentials.enabled,
    'oauth.backchannel_logout': true,
    'oauth.frontchannel_logout': true,
    'oauth.client_id_metadata': oidc.client_id_metadata_enabled,
    'oauth.dpop': dpop.enabled,
    'agents.passkey_approval': settings.passkey.enabled,
    phone: hasPhone(phone),
    'agents.erc8004': registriesIn(settings.chains).length > 0,
    'sign_in.passkeys': settings.passkey.enabled,
    'sign_in.passkey_signals': settings.passkey.enabled,
    'sign_in.passkey_upgrade': settings.passkey.enabled,
    'sign_in.anonymous': anonymous.enabled,
    'sign_in.siwe': siwe.enabled,
    'sign_in.adaptive_mfa': adaptive_mfa.enabled,
    'sign_in.sms': hasPhone(phone) && sms.enabled,
    'sso.callback_relay': settings.oauth_proxy.enabled,
    'sso.social': social.enabled,
    'sso.generic': generic_oauth.enabled,
    'sso.enterprise': enterprise_sso.enabled,
    'sso.verified_domains': verified_domains.enabled,
    'identity.sign_up': user_self_service.enabled,
    telemetry: settings.telemetry.enabled,
    admin: settings.admin.enabled,
    organizations: settings.organizations.enabled,
  }
  return Object.entries(names)
    .filter(([, isOn]) => isOn)
    .map(([name]) => name)
}

const SWITCHES: ReadonlyMap<string, (settings: Settings) => boolean> = new Map([
  [checkout.name, (settings: Settings) => settings.commerce.enabled],
  [payouts.name, (settings: Settings) => settings.commerce.enabled],
  [x402.name, (settings: Settings) => settings.commerce.x402_enabled],
  [commerce.name, (settings: Settings) => settings.commerce.enabled],
])

/** Feature switches: the routes of a feature's actors exist only when its setting is on. */
function isRouteEnabled(route: Route, settings: Settings): boolean {
  const { target } = route
  if (!settings.admin.enabled && isForOperators(route)) return false
  return target.via === 'gateway' || (SWITCHES.get(target.address.name)?.(settings) ?? true)
}
