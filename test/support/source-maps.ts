/** AVA's processes read the source map of every module, half a second of each file: a run of many files does without. */
if (process.env['TEST_SOURCE_MAPS'] === 'off') process.setSourceMapsEnabled(false)
