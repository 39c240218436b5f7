/** How often a property is tried: `often` in the long form, `daily` in each other run. */
export function runs(often: number, daily = 25): number {
  return process.env['TEST_LONG'] === '1' ? often : daily
}
