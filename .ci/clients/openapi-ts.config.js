// Node needs the extensions in imports.
export default { input: process.env.DESCRIPTION, output: { path: "hey", module: { extension: ".js" } } };
