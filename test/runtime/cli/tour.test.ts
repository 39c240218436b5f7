import test from 'ava'
import { runTour } from '../../../runtime/cli/tour/tour.js'
import { REPEATED_OVER, sharedService } from '../../support/service.js'

for (const transport of REPEATED_OVER) {
  test(`every step of the tour succeeds (${transport})`, async (t) => {
    const running = await sharedService('plain', { transport })
    t.teardown(() => running.end())
    const lines: string[] = []
    const went = await runTour(running.baseUrl, (line) => lines.push(line), running.ca)
    t.true(went, lines.slice(-12).join('\n'))
    t.regex(lines.at(-1) ?? '', /all as documented/)
    // The output has no whole token, secret or password.
    t.notRegex(lines.join('\n'), /eyJ[\w-]{20,}|svcs_[\w-]{10,}|password: [\w-]{9,}/)
    // The user has signed in, and the application's API recognised the user.
    t.regex(lines.join('\n'), /200 \{ hello: /)
  })
}

test('a tour without a service reports that', async (t) => {
  const lines: string[] = []
  t.false(await runTour('http://127.0.0.1:1', (line) => lines.push(line)))
  t.regex(lines.at(-1) ?? '', /no service answers/)
})
