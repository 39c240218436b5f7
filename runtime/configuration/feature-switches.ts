/** Feature switches: the routes of a feature's actors exist only when its setting is on. */
import { checkout } from '../../actors/commerce/checkout/protocol.js'
import { commerce } from '../../actors/commerce/payments/protocol.js'
import { payouts } from '../../actors/commerce/payouts/protocol.js'
import { x402 } from '../../actors/commerce/x402/protocol.js'
import type { Route } from '../../gateway/route.js'
import type { Settings } from './settings.js'

const SWITCHES: ReadonlyMap<string, (settings: Settings) => boolean> = new Map([
  [checkout.name, (settings: Settings) => settings.commerce.enabled],
  [payouts.name, (settings: Settings) => settings.commerce.enabled],
  [x402.name, (settings: Settings) => settings.commerce.x402_enabled],
  [commerce.name, (settings: Settings) => settings.commerce.enabled],
])

export function isRouteEnabled({ target }: Route, settings: Settings): boolean {
  return target.via === 'gateway' || (SWITCHES.get(target.address.name)?.(settings) ?? true)
}
