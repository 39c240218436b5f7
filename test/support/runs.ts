/** The form of `npm run test:long`: what proves a rule once runs daily, what tries it often runs here. */
export const IS_LONG = process.env['TEST_LONG'] === '1'

/** How often a property is tried: `often` in the long form, `daily` in each other run. */
export function runs(often: number, daily = 25): number {
  return IS_LONG ? often : daily
}
