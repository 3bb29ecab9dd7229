package migrate

// UpFolder migrates one schema from any folder.
var UpFolder = upFolder
